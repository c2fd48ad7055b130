-- Marks new notifications announced, and makes one e-mail for each owner of their workspaces, or for the member whom one
-- is for, unless one waits already. That one is touched: its sender locks it until its content is final.
WITH announced AS (
    UPDATE notifications SET is_announced = true
    WHERE id IN (SELECT id FROM notifications WHERE NOT is_announced ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
    RETURNING workspace_id, member_id
), told AS (
    SELECT DISTINCT accounts.id, greatest(%(due_at)s, accounts.mailed_at + %(every)s) AS due_at
    FROM announced JOIN members ON members.workspace_id = announced.workspace_id
        AND CASE WHEN member_id IS NULL THEN role = 'owner' ELSE members.id = member_id END
    JOIN accounts ON accounts.id = account_id
    WHERE wants_email AND password_hash IS NOT NULL AND %(is_sent)s
), arranged AS (
    INSERT INTO emails (id, kind, subject_id, due_at)
    SELECT 'eml_' || substr(id, length('acc_') + 1), 'notifications', id, due_at FROM told ORDER BY id
    ON CONFLICT (id) DO UPDATE SET due_at = emails.due_at
)
SELECT count(*) FROM announced
