-- Adds notifications for all members, and for members who still exist. A repeated notification becomes the newest
-- again, and counts the repetitions since its member last read it.
INSERT INTO notifications (id, workspace_id, member_id, kind, once, detail, conversation_id, amount, created_at)
SELECT new.id, new.workspace_id, new.member_id, new.kind, new.once, new.detail, new.conversation_id, new.amount,
    new.created_at
FROM json_populate_recordset(NULL::notifications, %(rows)s) AS new
WHERE new.member_id IS NULL
    OR EXISTS (SELECT FROM members WHERE members.id = new.member_id AND members.workspace_id = new.workspace_id)
ORDER BY new.once, new.kind
ON CONFLICT (workspace_id, kind, once) DO UPDATE SET
    id = excluded.id, created_at = excluded.created_at, is_announced = false,
    amount = excluded.amount + CASE WHEN notifications.id > (
        SELECT read_until FROM members WHERE members.id = notifications.member_id) THEN notifications.amount ELSE 0 END
