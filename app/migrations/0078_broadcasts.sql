-- Broadcasts: one message, or the start of an automation, for each contact of a segment.

-- A mailbox of its own, as a replay is. `filter`: which contacts; until it starts, that of the segment decides, if it
-- has one. `reached`: the last contact that was looked at while it writes down whom it is for; null once that is done.
-- `count`: how many these are, so far. `handled`: how many of them have a row. `wakes_at`: when it starts, or goes on.
-- `problem`: why it has paused by itself.
CREATE TABLE broadcasts (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    state text NOT NULL CHECK (state IN ('scheduled', 'canary', 'running', 'paused', 'done', 'aborted')),
    segment_id text COLLATE "C",
    filter json,
    channel_id text COLLATE "C",
    message json,
    automation_id text COLLATE "C",
    send_at timestamptz,
    time_zone text NOT NULL CHECK (time_zone IN ('workspace', 'contact')),
    per_second integer CHECK (per_second BETWEEN 1 AND 1000),
    canary boolean NOT NULL,
    created_by text COLLATE "C",
    trace_id text NOT NULL,
    reached text COLLATE "C" DEFAULT '',
    count integer NOT NULL DEFAULT 0,
    handled integer NOT NULL DEFAULT 0,
    problem text,
    paced_until timestamptz,
    wakes_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    CHECK ((message IS NULL) <> (automation_id IS NULL)),
    CHECK (segment_id IS NOT NULL OR filter IS NOT NULL)
);
CREATE INDEX broadcasts_mail ON broadcasts (id) WHERE due_at IS NOT NULL;
CREATE INDEX broadcasts_waiting ON broadcasts (wakes_at) WHERE wakes_at IS NOT NULL;
CREATE INDEX broadcasts_page ON broadcasts (workspace_id, id);
CREATE INDEX broadcasts_state_page ON broadcasts (workspace_id, state, id);
CREATE INDEX broadcasts_age ON broadcasts (created_at);

-- The contacts still to be handled, some hundred in a part; the first `place` of a part are done. Contacts in quiet
-- hours are moved to a part that is due when these end.
CREATE TABLE broadcast_parts (
    broadcast_id text COLLATE "C" NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    due_at timestamptz NOT NULL,
    place integer NOT NULL DEFAULT 0,
    contact_ids text[] NOT NULL,
    PRIMARY KEY (broadcast_id, due_at, number)
);

-- The outcome of each contact that was handled.
CREATE TABLE broadcast_rows (
    broadcast_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('sent', 'started', 'skipped')),
    reason text,
    message_id text COLLATE "C",
    run_id text COLLATE "C",
    replied_at timestamptz,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (broadcast_id, number)
);
CREATE UNIQUE INDEX broadcast_rows_contact ON broadcast_rows (broadcast_id, contact_id);
CREATE INDEX broadcast_rows_outcome_page ON broadcast_rows (broadcast_id, outcome, number);
CREATE INDEX broadcast_rows_replied ON broadcast_rows (broadcast_id, number) WHERE replied_at IS NOT NULL;

-- Each transaction adds what it changes to `broadcast_deltas`; the scheduler adds that up in `broadcast_counts`.
CREATE TABLE broadcast_deltas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    broadcast_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount integer NOT NULL
);
CREATE INDEX broadcast_deltas_broadcast ON broadcast_deltas (broadcast_id);
CREATE TABLE broadcast_counts (
    broadcast_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (broadcast_id, key)
);

-- Of a conversation: the broadcast whose message is the latest of all broadcasts' in it, until the contact writes.
ALTER TABLE messages ADD COLUMN broadcast_id text COLLATE "C";
ALTER TABLE conversations ADD COLUMN broadcast_id text COLLATE "C";
CREATE INDEX messages_of_automations ON messages (channel_id, due_at)
    WHERE due_at IS NOT NULL AND is_automated AND broadcast_id IS NULL;
CREATE INDEX messages_of_broadcasts ON messages (channel_id, due_at)
    WHERE due_at IS NOT NULL AND broadcast_id IS NOT NULL;
-- Those of a broadcast that are on their way.
CREATE INDEX messages_under_way ON messages (broadcast_id)
    WHERE broadcast_id IS NOT NULL AND (due_at IS NOT NULL OR is_behind);

-- What a message counts as: what is not sent yet is `waiting`, and one that failed counts for its reason, too.
CREATE FUNCTION broadcast_keys(message messages) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN message.status IN ('queued', 'sending') THEN 'waiting' ELSE message.status END
    UNION ALL
    SELECT 'failed:' || (message.failure->>'code') WHERE message.status = 'failed' AND message.failure IS NOT NULL
$$;

CREATE FUNCTION count_message_of_broadcast() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO broadcast_deltas (broadcast_id, key, amount)
    SELECT NEW.broadcast_id, key, sum(amount) FROM (
        SELECT key, 1 AS amount FROM broadcast_keys(NEW) AS key
        UNION ALL
        SELECT key, -1 FROM broadcast_keys(OLD) AS key WHERE TG_OP = 'UPDATE') AS counted
    GROUP BY key HAVING sum(amount) <> 0;
    RETURN NULL;
END $$;
CREATE TRIGGER count_new_of_broadcast AFTER INSERT ON messages FOR EACH ROW
    WHEN (NEW.broadcast_id IS NOT NULL) EXECUTE FUNCTION count_message_of_broadcast();
CREATE TRIGGER count_changed_of_broadcast AFTER UPDATE OF status ON messages FOR EACH ROW
    WHEN (NEW.broadcast_id IS NOT NULL AND NEW.status <> OLD.status AND NEW.status <> 'sending')
    EXECUTE FUNCTION count_message_of_broadcast();

-- A contact that writes within a week of a broadcast's message has replied to it.
CREATE FUNCTION count_reply_to_broadcast() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE broadcast_rows SET replied_at = now()
    WHERE broadcast_id = OLD.broadcast_id AND contact_id = OLD.contact_id AND outcome = 'sent'
        AND replied_at IS NULL AND at > now() - interval '7 days';
    IF FOUND THEN
        INSERT INTO broadcast_deltas (broadcast_id, key, amount) VALUES (OLD.broadcast_id, 'replied', 1);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_reply AFTER UPDATE OF broadcast_id ON conversations FOR EACH ROW
    WHEN (OLD.broadcast_id IS NOT NULL AND NEW.broadcast_id IS NULL) EXECUTE FUNCTION count_reply_to_broadcast();
