-- Lists of the inbox: the latest message first, of all and by assignee.

CREATE INDEX conversations_latest ON conversations (workspace_id, coalesce(last_message_at, created_at), id)
    WHERE status = 'open' AND snoozed_until IS NULL;
CREATE INDEX conversations_assignee_latest
    ON conversations (workspace_id, assignee_id, coalesce(last_message_at, created_at), id)
    WHERE status = 'open' AND snoozed_until IS NULL;

-- Snoozed conversations are counted by assignee too, so that lists without them have exact counts. The lock waits for
-- transactions that have counted without; what these and earlier ones left out is added after it.
LOCK TABLE conversations IN SHARE ROW EXCLUSIVE MODE;
CREATE OR REPLACE FUNCTION counted_as(talk conversations) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
    SELECT key FROM unnest(
        ARRAY['open', coalesce('assignee:' || talk.assignee_id, 'unassigned'),
            CASE WHEN talk.snoozed_until IS NOT NULL THEN 'snoozed' END,
            CASE WHEN talk.snoozed_until IS NOT NULL THEN coalesce('asleep:' || talk.assignee_id, 'asleep') END,
            CASE WHEN talk.waiting_since IS NOT NULL THEN 'waiting' END]
        || ARRAY(SELECT 'label:' || label FROM unnest(talk.labels) AS label)) AS key
    WHERE talk.status = 'open' AND key IS NOT NULL
$$;

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
