-- `buttons`: those that the message offers, each `id` and `label`; null: none. `button_id`: the one that was pressed.
ALTER TABLE messages ADD COLUMN buttons json, ADD COLUMN button_id text;

-- Telegram sends presses only to bots that ask for them. Once processes of this version run, each is asked to.
INSERT INTO channel_requests (id, workspace_id, action, next_attempt_at)
SELECT id, workspace_id, 'connect', now() + interval '10 minutes' FROM channels
WHERE kind = 'telegram' AND state = 'connected' AND deleted_at IS NULL
ON CONFLICT (id) DO NOTHING;
