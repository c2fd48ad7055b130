-- Conversations whose contact waits for an answer, and when the contact was answered for the first time.

-- They are noted from now on; what contacts wrote before waits for nothing.
ALTER TABLE conversations ADD COLUMN waiting_since timestamptz, ADD COLUMN first_answered_at timestamptz;
CREATE INDEX conversations_waiting ON conversations (workspace_id, waiting_since, id) WHERE waiting_since IS NOT NULL;
