-- `buttons`: those that the message offers, each `id` and `label`; null: none. `button_id`: the one that was pressed.
ALTER TABLE messages ADD COLUMN buttons json, ADD COLUMN button_id text;

-- Telegram sends presses only to bots that ask for them. Once processes of this version run, each is asked to.
INSERT INTO channel_requests (id, workspace_id, action, next_attempt_at)
SELECT id, workspace_id, 'connect', now() + interval '10 minutes' FROM channels
WHERE kind = 'telegram' AND state = 'connected' AND deleted_at IS NULL
ON CONFLICT (id) DO NOTHING;

-- Files that runs fetch from other servers, for a message that they are about to send. The run waits for them.
ALTER TABLE uploads ADD COLUMN run_id text;
CREATE INDEX uploads_run ON uploads (run_id) WHERE run_id IS NOT NULL;
ALTER TABLE runs DROP CONSTRAINT runs_waits_for_check, ADD CONSTRAINT runs_waits_for_check
    CHECK (waits_for IN ('time', 'reply', 'response', 'run', 'event', 'quiet_hours', 'member', 'pause', 'file'))
    NOT VALID;
