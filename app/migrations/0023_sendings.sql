-- Outbound messages as mail of their channel.

-- Of a conversation only the first unfinished message is mail; `is_behind`: the message waits behind it.
ALTER TABLE messages ADD COLUMN is_behind boolean NOT NULL DEFAULT false;
-- So that a claim finds room beside the row, and changes no index.
ALTER TABLE messages SET (fillfactor = 80);
CREATE INDEX messages_mail ON messages (channel_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX messages_of_people ON messages (channel_id, due_at) WHERE due_at IS NOT NULL AND NOT is_automated;
CREATE UNIQUE INDEX messages_first ON messages (conversation_id) WHERE due_at IS NOT NULL;
CREATE INDEX messages_behind ON messages (conversation_id, id) WHERE is_behind;
