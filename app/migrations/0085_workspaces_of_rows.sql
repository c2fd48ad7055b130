-- Every row of a workspace names it, so that a workspace can be moved to another database. Rows from before have none.

ALTER TABLE attempts ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE automation_counts ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE broadcast_counts ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE broadcast_deltas ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE broadcast_parts ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE broadcast_rows ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE conversation_openings ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE failure_hours ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE failure_minutes ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE idempotency_keys ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE import_errors ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE import_lines ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE replay_parts ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE replay_rows ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE run_counts ADD COLUMN workspace_id text COLLATE "C";
COMMIT;
ALTER TABLE selection_parts ADD COLUMN workspace_id text COLLATE "C";
COMMIT;

CREATE OR REPLACE FUNCTION count_message_of_broadcast() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO broadcast_deltas (workspace_id, broadcast_id, key, amount)
    SELECT NEW.workspace_id, NEW.broadcast_id, key, sum(amount) FROM (
        SELECT key, 1 AS amount FROM broadcast_keys(NEW) AS key
        UNION ALL
        SELECT key, -1 FROM broadcast_keys(OLD) AS key WHERE TG_OP = 'UPDATE') AS counted
    GROUP BY key HAVING sum(amount) <> 0;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION count_reply_to_broadcast() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE broadcast_rows SET replied_at = now()
    WHERE broadcast_id = OLD.broadcast_id AND contact_id = OLD.contact_id AND outcome = 'sent'
        AND replied_at IS NULL AND at > now() - interval '7 days';
    IF FOUND THEN
        INSERT INTO broadcast_deltas (workspace_id, broadcast_id, key, amount)
        VALUES (OLD.workspace_id, OLD.broadcast_id, 'replied', 1);
    END IF;
    RETURN NULL;
END $$;
