-- Accounts of people, their sessions, their memberships, and the visits of support staff.

-- One for each e-mail address. `password_hash`: null until its owner has set a password.
CREATE TABLE accounts (
    id text COLLATE "C" PRIMARY KEY,
    email text NOT NULL,
    password_hash text,
    is_support boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX accounts_email ON accounts (lower(email));

-- Members with one e-mail address become members with one account. It takes over the password of the newest of them.
INSERT INTO accounts (id, email, password_hash, is_support, created_at)
SELECT 'acc_' || substr(newest.id, length('mem_') + 1), newest.email, newest.password_hash,
    (SELECT bool_or(is_support) FROM members WHERE lower(members.email) = lower(newest.email)), newest.created_at
FROM (SELECT DISTINCT ON (lower(email)) * FROM members ORDER BY lower(email), id DESC) AS newest;

ALTER TABLE members ADD COLUMN account_id text COLLATE "C" REFERENCES accounts;
UPDATE members SET account_id = accounts.id FROM accounts WHERE lower(accounts.email) = lower(members.email);
-- No running process of the previous version uses the columns that go: only its command `member create` did. That is
-- refused until it is upgraded, where it would otherwise make members who cannot sign in.
ALTER TABLE members
    ALTER COLUMN account_id SET NOT NULL,
    DROP COLUMN email,
    DROP COLUMN password_hash,
    DROP COLUMN is_support;
CREATE UNIQUE INDEX members_account ON members (account_id, workspace_id);
CREATE INDEX members_page ON members (workspace_id, id);

-- `token_hash`: SHA-256 of what the cookie holds. `seen_at` is accurate to the minute.
CREATE TABLE sessions (
    id text COLLATE "C" PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    account_id text COLLATE "C" NOT NULL REFERENCES accounts,
    address text NOT NULL,
    user_agent text NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE INDEX sessions_account ON sessions (account_id, id);
CREATE INDEX sessions_age ON sessions (expires_at);

-- How many attempts to sign in have failed until `ends_at`, by account, by address, and by both. `key`: a digest.
CREATE TABLE sign_in_failures (
    key bytea PRIMARY KEY,
    failures integer NOT NULL,
    ends_at timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_age ON sign_in_failures (ends_at);

-- Links that set a password once (`reset`), or make their account a member of a workspace (`invitation`).
CREATE TABLE password_links (
    id text COLLATE "C" PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    account_id text COLLATE "C" NOT NULL REFERENCES accounts,
    purpose text NOT NULL CHECK (purpose IN ('invitation', 'reset')),
    workspace_id text COLLATE "C" REFERENCES workspaces,
    role text CHECK (role IN ('owner', 'admin', 'agent')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    CHECK ((purpose = 'invitation') = (workspace_id IS NOT NULL AND role IS NOT NULL))
);
CREATE INDEX password_links_account ON password_links (account_id, id);
CREATE INDEX password_links_workspace ON password_links (workspace_id, id) WHERE workspace_id IS NOT NULL;
CREATE INDEX password_links_age ON password_links (expires_at);

-- Support staff act in a workspace during a visit, and say why. Kept, as the audit log names them.
CREATE TABLE visits (
    id text COLLATE "C" PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL REFERENCES accounts,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    reason text NOT NULL,
    ticket text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX visits_account ON visits (account_id, workspace_id, id);

-- Why support staff did it.
ALTER TABLE audit_entries
    ADD COLUMN reason text,
    ADD COLUMN ticket text,
    DROP CONSTRAINT audit_entries_actor_type_check,
    ADD CONSTRAINT audit_entries_actor_type_check
        CHECK (actor_type IN ('token', 'member', 'support', 'command')) NOT VALID;
COMMIT;
ALTER TABLE audit_entries VALIDATE CONSTRAINT audit_entries_actor_type_check;
