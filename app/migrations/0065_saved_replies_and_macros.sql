-- Saved replies and macros: texts and actions that members prepare for their work in the inbox.

-- `folded`: the shortcut in the form in which it is compared.
CREATE TABLE saved_replies (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    shortcut text NOT NULL,
    folded text COLLATE "C" NOT NULL,
    text text NOT NULL,
    attachments json NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX saved_replies_page ON saved_replies (workspace_id, id);
CREATE UNIQUE INDEX saved_replies_shortcut ON saved_replies (workspace_id, folded);

CREATE TABLE macros (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    actions json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX macros_page ON macros (workspace_id, id);

-- Files of saved replies, which any number of messages have too. `was_sent`: one does, so the file stays.
ALTER TABLE uploads ADD COLUMN saved_reply_id text, ADD COLUMN was_sent boolean NOT NULL DEFAULT false;
