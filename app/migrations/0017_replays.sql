-- Replays: chosen deliveries of a workspace, sent again; and what becomes of jobs that failed.

-- A mailbox of its own. `filter`: as given, with the statuses that it stands for. `count`: the deliveries chosen when it
-- was made. `paced_until`: when the next may be sent, where there is a limit. `wakes_at`: the same while it waits for it.
CREATE TABLE replays (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('canary', 'running', 'paused', 'done', 'aborted')),
    filter json NOT NULL DEFAULT '{}',
    count integer NOT NULL,
    sent integer NOT NULL DEFAULT 0,
    skipped integer NOT NULL DEFAULT 0,
    per_second integer CHECK (per_second BETWEEN 1 AND 1000),
    created_by text COLLATE "C",
    trace_id text NOT NULL,
    paced_until timestamptz,
    wakes_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
CREATE INDEX replays_mail ON replays (id) WHERE due_at IS NOT NULL;
CREATE INDEX replays_waiting ON replays (wakes_at) WHERE wakes_at IS NOT NULL;
CREATE INDEX replays_page ON replays (workspace_id, id);
CREATE INDEX replays_age ON replays (created_at);

-- The deliveries that are still to come, oldest first, some hundred in a part; `claims`: under which number each had been
-- claimed last when it was chosen.
CREATE TABLE replay_parts (
    replay_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    delivery_ids text[] NOT NULL,
    claims integer[] NOT NULL,
    PRIMARY KEY (replay_id, number)
);

-- What became of those that it has come to. `sent_as`: the delivery that went out.
CREATE TABLE replay_rows (
    replay_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    delivery_id text COLLATE "C" NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('sent', 'skipped')),
    reason text,
    sent_as text COLLATE "C",
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (replay_id, number)
);
CREATE INDEX replay_rows_outcome_page ON replay_rows (replay_id, outcome, number);

-- A job that failed may be replayed as another, or discarded.
ALTER TABLE jobs
    ADD COLUMN replayed_from text COLLATE "C",
    ADD COLUMN replayed_as text COLLATE "C",
    ADD COLUMN discarded_at timestamptz,
    ADD COLUMN discard_reason text;
CREATE INDEX jobs_failures_page ON jobs (workspace_id, id)
    WHERE status = 'failed' AND replayed_as IS NULL AND discarded_at IS NULL;
