-- Visitors of web chats: browsers in which somebody has written.

-- `key_hash`, `token_hash`: SHA-256 of the key that the page made up, and of the token that it was given for it.
-- `user_id`: who the workspace has signed the visitor to be. `peer`: where answers to it go; visitors of one user share it.
CREATE TABLE visitors (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    channel_id text COLLATE "C" NOT NULL,
    key_hash bytea NOT NULL,
    token_hash bytea NOT NULL,
    user_id text,
    peer text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (channel_id, key_hash)
);
CREATE UNIQUE INDEX visitors_token ON visitors (token_hash);
CREATE INDEX visitors_user ON visitors (channel_id, user_id, id) WHERE user_id IS NOT NULL;

CREATE INDEX conversations_peer ON conversations (channel_id, peer) WHERE peer IS NOT NULL;
CREATE INDEX uploads_visitor ON uploads (visitor_id) WHERE visitor_id IS NOT NULL AND message_id IS NULL;
