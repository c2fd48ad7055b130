-- Channels and what comes in and goes out over them: identities, messages as mail, receipts, files.

-- `opt_out_words`: null for the built-in lists.
ALTER TABLE workspaces ADD COLUMN opt_out_words json;

-- `credentials`: encrypted JSON. `account`: the provider's own identifier of the bot or phone number. `paced_until`: the
-- time by which what was sent fits the rate (GCRA). `paused_until`: the provider asked for a pause until then.
ALTER TABLE channels
    ADD COLUMN settings json NOT NULL DEFAULT '{}',
    ADD COLUMN problem json,
    ADD COLUMN credentials bytea,
    ADD COLUMN account text,
    ADD COLUMN paced_until timestamptz,
    ADD COLUMN paused_until timestamptz,
    ADD COLUMN deleted_at timestamptz;

-- Who a contact is on a kind of channel. `address`: the kind, ':', and `external_id`.
CREATE TABLE identities (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    contact_id text COLLATE "C" NOT NULL,
    channel_kind text NOT NULL,
    external_id text NOT NULL,
    address text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX identities_address ON identities (workspace_id, address);
CREATE INDEX identities_contact ON identities (contact_id);

-- That two contacts may be the same person. A pair is stored once, with the smaller identifier first.
CREATE TABLE suggested_merges (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    contact_id text COLLATE "C" NOT NULL,
    other_id text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (contact_id, other_id)
);
CREATE INDEX suggested_merges_other ON suggested_merges (other_id);

-- `peer`: the contact's address at the provider, such as a chat. `unread`: inbound messages that no member has read.
ALTER TABLE conversations
    ADD COLUMN peer text,
    ADD COLUMN unread integer NOT NULL DEFAULT 0,
    ADD COLUMN window_ends_at timestamptz,
    ADD COLUMN paced_until timestamptz,
    ADD COLUMN paused_until timestamptz;
CREATE INDEX conversations_channel ON conversations (channel_id, id);
CREATE INDEX conversations_assignee_page ON conversations (workspace_id, assignee_id, id);
CREATE INDEX conversations_status_page ON conversations (workspace_id, status, id);

-- `provider_id`: the provider's identifier, unique in the channel. `is_automated`: people go before automations.
-- `attachments`: files, as the API shows them but for their address.
ALTER TABLE messages
    ADD COLUMN channel_id text COLLATE "C",
    ADD COLUMN attachments json NOT NULL DEFAULT '[]',
    ADD COLUMN provider_id text,
    ADD COLUMN provider_time timestamptz,
    ADD COLUMN edited_at timestamptz,
    ADD COLUMN is_automated boolean NOT NULL DEFAULT false,
    ADD COLUMN due_at timestamptz,
    ADD COLUMN leased_until timestamptz,
    ADD COLUMN claim integer NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX messages_provider ON messages (channel_id, provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX messages_in_order ON messages (conversation_id, (coalesce(provider_time, created_at)), id);

-- Files: uploaded through the API, by visitors of a web chat, or to be fetched from a provider, which makes them mail of
-- their channel until they are here. `file`: where under MEDIA_DIR; null: not here. `source`: what to ask the provider
-- for. `expires_at`: when it is deleted unless a message has it by then.
CREATE TABLE uploads (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    channel_id text COLLATE "C",
    message_id text COLLATE "C",
    visitor_id text COLLATE "C",
    name text,
    content_type text,
    bytes bigint,
    file text,
    source json,
    problem text,
    tries integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX uploads_mail ON uploads (channel_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX uploads_waiting ON uploads (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX uploads_message ON uploads (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX uploads_expired ON uploads (expires_at) WHERE expires_at IS NOT NULL;
