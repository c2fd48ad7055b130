-- Marks new notifications announced, and creates one e-mail for each recipient who has none waiting: the owners of the
-- workspace, the member whom a notification is for, or the members who subscribe to new conversations. A waiting e-mail
-- is touched: its sender locks it until its content is final.
WITH announced AS (
    UPDATE notifications SET is_announced = true
    WHERE id = ANY(ARRAY(
        SELECT id FROM notifications WHERE NOT is_announced ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
    RETURNING workspace_id, member_id, kind
), news AS (
    SELECT DISTINCT workspace_id, member_id, CASE WHEN member_id IS NOT NULL OR kind = 'new_conversation' THEN kind END
        AS kind
    FROM announced
), told AS (
    SELECT account_id FROM news JOIN members ON members.workspace_id = news.workspace_id
    WHERE member_id IS NULL AND CASE WHEN kind IS NULL THEN role = 'owner'
        ELSE role = ANY(%(roles)s) AND kind || ':email' = ANY(coalesce(notices, %(defaults)s)) END
    UNION
    SELECT account_id FROM news JOIN members ON members.id = news.member_id
    WHERE role = ANY(%(roles)s) AND kind || ':email' = ANY(coalesce(notices, %(defaults)s))
), arranged AS (
    INSERT INTO emails (id, kind, subject_id, due_at)
    SELECT 'eml_' || substr(accounts.id, length('acc_') + 1), 'notifications', accounts.id,
        greatest(%(due_at)s, accounts.mailed_at + %(every)s)
    FROM told JOIN accounts ON accounts.id = account_id
    WHERE wants_email AND password_hash IS NOT NULL AND %(is_sent)s ORDER BY accounts.id
    ON CONFLICT (id) DO UPDATE SET due_at = emails.due_at
)
SELECT count(*) FROM announced
