-- Counts of a workspace's open conversations: all, unassigned, snoozed, waiting, and by assignee and label.

-- Each transaction adds what it changes to `conversation_deltas`; the scheduler adds that up in `conversation_counts`.
CREATE TABLE conversation_deltas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount int NOT NULL
);
CREATE INDEX conversation_deltas_workspace ON conversation_deltas (workspace_id);
CREATE TABLE conversation_counts (
    workspace_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (workspace_id, key)
);

-- What a conversation counts as.
CREATE FUNCTION counted_as(talk conversations) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
    SELECT key FROM unnest(
        ARRAY['open', coalesce('assignee:' || talk.assignee_id, 'unassigned'),
            CASE WHEN talk.snoozed_until IS NOT NULL THEN 'snoozed' END,
            CASE WHEN talk.waiting_since IS NOT NULL THEN 'waiting' END]
        || ARRAY(SELECT 'label:' || label FROM unnest(talk.labels) AS label)) AS key
    WHERE talk.status = 'open' AND key IS NOT NULL
$$;

CREATE FUNCTION count_conversation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO conversation_deltas (workspace_id, key, amount)
    SELECT NEW.workspace_id, key, sum(amount) FROM (
        SELECT key, 1 AS amount FROM counted_as(NEW) AS key
        UNION ALL
        SELECT key, -1 FROM counted_as(OLD) AS key) AS counted
    GROUP BY key HAVING sum(amount) <> 0;
    RETURN NULL;
END $$;

-- Most changes of a conversation count for nothing: a message that is not the first to wait for an answer, its pace.
CREATE TRIGGER count_new AFTER INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION count_conversation();
CREATE TRIGGER count_changed AFTER UPDATE ON conversations FOR EACH ROW
    WHEN ((OLD.status, OLD.assignee_id, OLD.snoozed_until IS NULL, OLD.waiting_since IS NULL, OLD.labels)
        IS DISTINCT FROM (NEW.status, NEW.assignee_id, NEW.snoozed_until IS NULL, NEW.waiting_since IS NULL, NEW.labels))
    EXECUTE FUNCTION count_conversation();

-- The triggers count what changes from here on, so what they have not counted was there before. One statement sees all
-- three tables at one moment and blocks no writer.
COMMIT;
INSERT INTO conversation_deltas (workspace_id, key, amount)
SELECT workspace_id, key, sum(amount) FROM (
    SELECT workspace_id, key, 1 AS amount FROM conversations CROSS JOIN LATERAL counted_as(conversations) AS key
    WHERE status = 'open'
    UNION ALL
    SELECT workspace_id, key, -amount FROM conversation_counts
    UNION ALL
    SELECT workspace_id, key, -amount FROM conversation_deltas) AS uncounted
GROUP BY 1, 2 HAVING sum(amount) <> 0;
