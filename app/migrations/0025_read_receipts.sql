-- An agent's conversations of one status, which may be few among many.
CREATE INDEX conversations_assignee_status_page ON conversations (workspace_id, assignee_id, status, id);

-- What contacts are to be told at their providers: that their latest message was read. Mail of a channel.
CREATE TABLE read_receipts (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    channel_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    provider_id text NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX read_receipts_mail ON read_receipts (channel_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX read_receipts_waiting ON read_receipts (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX read_receipts_conversation ON read_receipts (conversation_id);
