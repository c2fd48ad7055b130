-- Support accounts belong to the installation, and the audit log says of each entry which person acted.

-- `disabled_at`: since when a support account cannot sign in.
ALTER TABLE accounts ADD COLUMN disabled_at timestamptz;
CREATE INDEX accounts_support ON accounts (id) WHERE is_support;

-- `account_id`: whose membership or visit the actor is; null for tokens and commands. `workspace_id`: null for what
-- operators do with support accounts.
ALTER TABLE audit_entries
    ADD COLUMN account_id text COLLATE "C",
    ALTER COLUMN workspace_id DROP NOT NULL;
COMMIT;
UPDATE audit_entries SET account_id = visits.account_id FROM visits
WHERE visits.id = actor_id AND audit_entries.account_id IS NULL;
COMMIT;
UPDATE audit_entries SET account_id = members.account_id FROM members
WHERE members.id = actor_id AND audit_entries.account_id IS NULL;
COMMIT;
-- Of one person, and of all support staff, in all workspaces.
CREATE INDEX audit_entries_account ON audit_entries (account_id, id) WHERE account_id IS NOT NULL;
CREATE INDEX audit_entries_support ON audit_entries (id) WHERE actor_type = 'support';

-- From now on staff act in every workspace on visits, so that a membership which they still have gives them no rights:
-- no conversation is assigned to them.
UPDATE members SET availability = 'away' FROM accounts
WHERE accounts.id = account_id AND is_support AND availability = 'available';
