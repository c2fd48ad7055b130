-- Assignment by rule: to the available member of a workspace with the fewest open conversations.

-- `capacity`: with how many open conversations a member gets no more; null: there is no limit. `assigned_at`: when the
-- rule last gave them one.
ALTER TABLE members
    ADD COLUMN availability text NOT NULL DEFAULT 'available' CHECK (availability IN ('available', 'away')),
    ADD COLUMN capacity integer,
    ADD COLUMN assigned_at timestamptz;

CREATE INDEX channels_balanced ON channels (id)
    WHERE settings->>'assignment' = 'balanced' AND deleted_at IS NULL;

-- Those that nobody has, who has waited longest first.
CREATE INDEX conversations_queue ON conversations (channel_id, waiting_since, id)
    WHERE status = 'open' AND assignee_id IS NULL AND snoozed_until IS NULL;

-- So that the open conversations of one member are added up without those of others.
CREATE INDEX conversation_deltas_key ON conversation_deltas (workspace_id, key);
DROP INDEX conversation_deltas_workspace;
