-- Automations and their runs; the conversations and messages that runs take part in.

ALTER TABLE workspaces ADD COLUMN timezone text NOT NULL DEFAULT 'UTC', ADD COLUMN quiet_hours json;

-- `version`: the published one. `definition`: the draft. `reentry`: null if it depends on what starts the run.
CREATE TABLE automations (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    status text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'published', 'unpublished', 'paused')),
    version integer,
    latest_version integer NOT NULL DEFAULT 0,
    definition json NOT NULL,
    reentry text CHECK (reentry IN ('every', 'after_finish', 'once')),
    exits json NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX automations_page ON automations (workspace_id, id);

CREATE TABLE automation_versions (
    automation_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    definition json NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (automation_id, number)
);

-- Which automations an event may start or end runs of: `key` is the kind of the event, for a trigger with a tag
-- followed by ':' and the tag. `since`: from when on; earlier events that still wait for what follows from them do not
-- count.
CREATE TABLE automation_listeners (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    key text NOT NULL,
    automation_id text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, key, automation_id)
);
CREATE INDEX automation_listeners_automation ON automation_listeners (automation_id);

-- Counts by automation: of runs by status, of runs that took a step, of starts that were refused. Transactions append
-- to the deltas, which no two of them contend for; the scheduler adds them up.
CREATE TABLE automation_deltas (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    automation_id text COLLATE "C" NOT NULL,
    key text NOT NULL,
    amount integer NOT NULL
);
CREATE INDEX automation_deltas_automation ON automation_deltas (automation_id);
CREATE TABLE automation_counts (
    automation_id text COLLATE "C" NOT NULL,
    key text NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (automation_id, key)
);

-- That a contact has entered an automation. `id`: both identifiers, with '/' between. `active`: runs not finished.
-- Changed only by a transaction that has locked the contact.
CREATE TABLE enrolments (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    automation_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    active integer NOT NULL
);
CREATE INDEX enrolments_automation ON enrolments (automation_id);

-- `step`: the step to be taken next, or the one that waits. `saved`: results of steps, by name. `answer`: what a wait
-- was for, once it is there. `wait`: the number of the present or last wait. `prompted`: the message after which a
-- message of the contact is a reply.
CREATE TABLE runs (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    automation_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C",
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'waiting', 'held', 'completed', 'failed', 'cancelled')),
    reason text,
    failure json,
    variables json NOT NULL DEFAULT '{}',
    event json,
    saved json NOT NULL DEFAULT '{}',
    step text,
    taken integer NOT NULL DEFAULT 0,
    unbroken integer NOT NULL DEFAULT 0,
    logged integer NOT NULL DEFAULT 0,
    wait integer NOT NULL DEFAULT 0,
    waits_for text CHECK (waits_for IN ('time', 'reply', 'response', 'quiet_hours', 'member', 'pause')),
    answer json,
    prompted text COLLATE "C",
    is_released boolean NOT NULL DEFAULT false,
    depth integer NOT NULL DEFAULT 0,
    job_id text COLLATE "C",
    event_id text COLLATE "C",
    parent_id text COLLATE "C",
    trace_id text NOT NULL,
    resume_at timestamptz,
    due_at timestamptz DEFAULT now(),
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    deaths integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz
) WITH (fillfactor = 50);  -- so that a claim finds room beside the row, and changes no index
CREATE INDEX runs_mail ON runs (workspace_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_resume ON runs (resume_at) WHERE resume_at IS NOT NULL;
CREATE INDEX runs_page ON runs (workspace_id, id);
CREATE INDEX runs_status_page ON runs (workspace_id, status, id);
CREATE INDEX runs_automation_page ON runs (automation_id, status, id);
CREATE INDEX runs_contact_page ON runs (contact_id, id);
CREATE INDEX runs_unfinished ON runs (contact_id, automation_id) WHERE finished_at IS NULL;
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;

-- The log of runs. `step`: its identifier in the definition.
CREATE TABLE run_steps (
    id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    step text NOT NULL,
    kind text NOT NULL,
    status text NOT NULL CHECK (status IN ('succeeded', 'failed', 'waiting')),
    at timestamptz NOT NULL,
    detail json NOT NULL,
    PRIMARY KEY (run_id, number, id)
) PARTITION BY RANGE (id);
CREATE TABLE run_steps_default PARTITION OF run_steps DEFAULT;

-- Requests that `http_request` steps make; mail of a workspace, deleted when the outcome is in the run.
CREATE TABLE run_requests (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    wait integer NOT NULL,
    key uuid NOT NULL,
    request json NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    due_at timestamptz DEFAULT now(),
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0
);
CREATE INDEX run_requests_mail ON run_requests (workspace_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX run_requests_waiting ON run_requests (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX run_requests_run ON run_requests (run_id);

CREATE TABLE channels (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    kind text NOT NULL,
    name text NOT NULL,
    state text NOT NULL DEFAULT 'connected'
        CHECK (state IN ('connected', 'reauthorization_required', 'disconnected')),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX channels_page ON channels (workspace_id, id);

-- `held_at`: when a member wrote in it, which holds the contact's runs until it is closed. `waiting_run_id`: the run that
-- waits for a reply in it, or did so last.
CREATE TABLE conversations (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    contact_id text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'closed')),
    assignee_id text COLLATE "C",
    held_at timestamptz,
    waiting_run_id text COLLATE "C",
    last_message_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX conversations_page ON conversations (workspace_id, id);
CREATE INDEX conversations_contact ON conversations (contact_id, (coalesce(last_message_at, created_at)), id);

-- `run_id`: the run that sent the message, or that took it as a reply.
CREATE TABLE messages (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    direction text NOT NULL CHECK (direction IN ('in', 'out')),
    text text,
    template json,
    status text NOT NULL
        CHECK (status IN ('received', 'queued', 'sending', 'sent', 'delivered', 'read', 'failed', 'unknown')),
    failure json,
    author json NOT NULL,
    run_id text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messages_page ON messages (workspace_id, id);
CREATE INDEX messages_conversation ON messages (conversation_id, id);
CREATE INDEX messages_contact ON messages (contact_id, id);

-- The run that an event came of, and how many automations lie between it and the outside.
ALTER TABLE events ADD COLUMN run_id text COLLATE "C", ADD COLUMN depth integer NOT NULL DEFAULT 0;
-- `fan_out_after` is now the last automation or endpoint that has its run or delivery; automations sort first. The index
-- finds events of a contact whose runs are still to come.
CREATE INDEX events_unfollowed ON events (contact_id) WHERE due_at IS NOT NULL AND fan_out_after < 'aut_~';
