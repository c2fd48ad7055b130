-- Messages that nothing would ever end: those of a worker that died while its channel was not connected, and those that
-- their provider puts off again and again.

-- `stopped_at`: since when the channel is not connected, until what was being sent then has an outcome.
ALTER TABLE channels ADD COLUMN stopped_at timestamptz;
UPDATE channels SET stopped_at = now() WHERE state <> 'connected' AND deleted_at IS NULL;
CREATE INDEX channels_stopped ON channels (stopped_at) WHERE stopped_at IS NOT NULL;

-- `put_off_at`: when the provider first asked to send the message later.
ALTER TABLE messages ADD COLUMN put_off_at timestamptz;
