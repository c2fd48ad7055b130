-- Drafts: what members have begun to write in conversations, one each.

-- `key`: that of the form in which it was typed. `sent_keys`: those of the forms that were sent last, so that a draft of
-- one of them, which may arrive after it, is not kept.
CREATE TABLE drafts (
    member_id text COLLATE "C" NOT NULL REFERENCES members ON DELETE CASCADE,
    conversation_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    kind text NOT NULL CHECK (kind IN ('reply', 'note')),
    text text NOT NULL,
    key text NOT NULL,
    sent_keys text[] NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (member_id, conversation_id)
);
CREATE INDEX drafts_conversation ON drafts (conversation_id);
CREATE INDEX drafts_latest ON drafts (member_id, updated_at);
