-- `expires_at`: from then on the message is not sent any more; null: it always is.
ALTER TABLE messages ADD COLUMN expires_at timestamptz;

-- For runs that quiet hours hold, whose wait is decided again when the workspace changes these hours.
CREATE INDEX runs_quiet ON runs (workspace_id) WHERE waits_for = 'quiet_hours' AND resume_at IS NOT NULL;
