-- The session of a token with its account, in one row for each workspace that the account belongs to; and for how many
-- seconds the first unfinished write of one workspace has been due. Memberships of support accounts are left out: staff
-- act in every workspace on visits.
SELECT sessions.id, sessions.seen_at, accounts.id, accounts.email, accounts.is_support,
    (SELECT greatest(0, extract(epoch FROM now() - due_at))::float FROM jobs
     WHERE workspace_id = %(workspace_id)s AND due_at IS NOT NULL ORDER BY position LIMIT 1),
    belongs.id, belongs.workspace_id, belongs.name, belongs.role, belongs.availability
FROM sessions JOIN accounts ON accounts.id = sessions.account_id
LEFT JOIN LATERAL (
    SELECT members.id, workspace_id, workspaces.name, role, availability
    FROM members JOIN workspaces ON workspaces.id = members.workspace_id
    WHERE members.account_id = accounts.id AND NOT accounts.is_support ORDER BY workspace_id LIMIT %(most)s
) AS belongs ON true
WHERE token_hash = %(digest)s AND ended_at IS NULL AND expires_at > %(now)s AND seen_at > %(idle_since)s
    AND accounts.disabled_at IS NULL
