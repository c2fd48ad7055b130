-- Messages that are sent later.

-- `send_at`: when a `scheduled` message becomes `queued`; null for any other. An index with a condition on the status
-- would be changed by each claim. `created_at` is then the time at which it was queued.
ALTER TABLE messages ADD COLUMN send_at timestamptz, ADD COLUMN cancel_on_reply boolean NOT NULL DEFAULT false;
ALTER TABLE messages DROP CONSTRAINT messages_status_check, ADD CONSTRAINT messages_status_check
    CHECK (status IN ('received', 'scheduled', 'queued', 'sending', 'sent', 'delivered', 'read', 'failed', 'unknown'))
    NOT VALID;
CREATE INDEX messages_scheduled ON messages (send_at) WHERE send_at IS NOT NULL;
CREATE INDEX messages_scheduled_owner ON messages (workspace_id, send_at, id) WHERE send_at IS NOT NULL;
CREATE INDEX messages_scheduled_conversation ON messages (conversation_id, send_at, id) WHERE send_at IS NOT NULL;

-- A message that was scheduled has an old identifier, and goes behind what was queued before its time.
CREATE INDEX messages_behind_in_order ON messages (conversation_id, created_at, id) WHERE is_behind;
DROP INDEX messages_behind;

-- How many of its messages are scheduled.
ALTER TABLE conversations ADD COLUMN scheduled integer NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION note_changed_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'message', after.id FROM after JOIN before USING (id)
    WHERE (after.status, after.text, after.provider_time, after.conversation_id, after.send_at, after.failure::text,
            after.attachments::text)
        IS DISTINCT FROM (before.status, before.text, before.provider_time, before.conversation_id, before.send_at,
            before.failure::text, before.attachments::text)
    ORDER BY after.id;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION note_changed_conversations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'conversation', after.id FROM after JOIN before USING (id)
    WHERE (after.contact_id, after.status, after.assignee_id, after.unread, after.window_ends_at,
            after.last_message_at, after.labels, after.snoozed_until, after.scheduled)
        IS DISTINCT FROM (before.contact_id, before.status, before.assignee_id, before.unread, before.window_ends_at,
            before.last_message_at, before.labels, before.snoozed_until, before.scheduled)
    ORDER BY after.id;
    RETURN NULL;
END $$;
