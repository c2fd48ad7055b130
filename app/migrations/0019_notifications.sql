-- Notifications of workspaces, and e-mail that waits for its server.

-- `once`: what it is about; of each there is one. `is_announced`: e-mail to the owners has been arranged.
CREATE TABLE notifications (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    kind text NOT NULL CHECK (kind IN ('endpoint_stopped', 'import_ended', 'usage_high')),
    once text NOT NULL,
    detail json NOT NULL,
    is_announced boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notifications_page ON notifications (workspace_id, id);
CREATE UNIQUE INDEX notifications_once ON notifications (workspace_id, kind, once);
CREATE INDEX notifications_new ON notifications (id) WHERE NOT is_announced;

-- The last notification that a member has read, and the last that was in an e-mail to them.
ALTER TABLE members
    ADD COLUMN read_until text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN mailed_until text COLLATE "C" NOT NULL DEFAULT '';

-- Whether they want notifications by e-mail, and when they were sent some.
ALTER TABLE accounts
    ADD COLUMN wants_email boolean NOT NULL DEFAULT true,
    ADD COLUMN mailed_at timestamptz;

-- E-mail to be sent. Its text is written when it is sent, as links in it must not be stored. `subject_id`: of an
-- invitation its link, of notifications their account. `address`: where somebody asked for a link to reset a password.
CREATE TABLE emails (
    id text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('invitation', 'reset', 'notifications')),
    subject_id text COLLATE "C",
    address text,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX emails_due ON emails (due_at);
-- However often somebody asks, one waits for each address.
CREATE UNIQUE INDEX emails_address ON emails (lower(address)) WHERE address IS NOT NULL;
