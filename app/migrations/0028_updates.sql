-- Live updates: which resources have changed, noted by triggers in the transaction of the change.

-- `transaction_id`: what makes a place in a stream exact; `id` is the order within what becomes visible together.
-- `actor_id`: whose write a job is.
CREATE TABLE updates (
    id bigint GENERATED ALWAYS AS IDENTITY,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    workspace_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    subject_id text COLLATE "C" NOT NULL,
    actor_id text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX updates_transaction ON updates (transaction_id);
-- Rows are deleted after an hour, so that a large table needs no large share of dead rows to be cleaned.
ALTER TABLE updates SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);

-- At most one row: updates of this transaction and of earlier ones may be deleted.
CREATE TABLE updates_forgotten (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    until xid8 NOT NULL
);

-- Statement triggers, with the rows of a statement in one table: a row trigger doubles the cost of inserting a message.
CREATE FUNCTION note_updates() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT workspace_id, TG_ARGV[0], id FROM after ORDER BY id;
    RETURN NULL;
END $$;

CREATE FUNCTION note_changed_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'message', after.id FROM after JOIN before USING (id)
    WHERE (after.status, after.text, after.provider_time, after.conversation_id, after.failure::text,
            after.attachments::text)
        IS DISTINCT FROM (before.status, before.text, before.provider_time, before.conversation_id,
            before.failure::text, before.attachments::text)
    ORDER BY after.id;
    RETURN NULL;
END $$;

CREATE FUNCTION note_changed_conversations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'conversation', after.id FROM after JOIN before USING (id)
    WHERE (after.contact_id, after.status, after.assignee_id, after.unread, after.window_ends_at,
            after.last_message_at)
        IS DISTINCT FROM (before.contact_id, before.status, before.assignee_id, before.unread, before.window_ends_at,
            before.last_message_at)
    ORDER BY after.id;
    RETURN NULL;
END $$;

CREATE FUNCTION note_changed_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'run', after.id FROM after JOIN before USING (id)
    WHERE (after.status, after.contact_id) IS DISTINCT FROM (before.status, before.contact_id)
    ORDER BY after.id;
    RETURN NULL;
END $$;

CREATE FUNCTION note_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id, actor_id) VALUES (NEW.workspace_id, 'job', NEW.id, NEW.token_id);
    RETURN NULL;
END $$;

CREATE TRIGGER note_inserted AFTER INSERT ON messages
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('message');
CREATE TRIGGER note_changed AFTER UPDATE ON messages
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_changed_messages();
CREATE TRIGGER note_inserted AFTER INSERT ON conversations
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('conversation');
CREATE TRIGGER note_changed AFTER UPDATE ON conversations
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_changed_conversations();
CREATE TRIGGER note_inserted AFTER INSERT ON runs
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('run');
CREATE TRIGGER note_changed AFTER UPDATE ON runs
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_changed_runs();
CREATE TRIGGER note_inserted AFTER INSERT ON notifications
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('notification');

-- Only people listen for their own writes, and nearly all writes are those of tokens: for them, a row trigger whose
-- condition is false costs less than a statement trigger.
CREATE TRIGGER note_inserted AFTER INSERT ON jobs FOR EACH ROW
    WHEN (NEW.token_id >= 'mem_' AND NEW.token_id < 'mem`' OR NEW.token_id >= 'vis_' AND NEW.token_id < 'vis`')
    EXECUTE FUNCTION note_job();
CREATE TRIGGER note_changed AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN ((NEW.token_id >= 'mem_' AND NEW.token_id < 'mem`' OR NEW.token_id >= 'vis_' AND NEW.token_id < 'vis`')
        AND NEW.status <> OLD.status)
    EXECUTE FUNCTION note_job();
