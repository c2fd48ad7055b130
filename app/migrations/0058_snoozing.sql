-- Snoozed conversations: open ones that wake at a time, or when the contact writes.

ALTER TABLE conversations ADD COLUMN snoozed_until timestamptz;
CREATE INDEX conversations_snoozed ON conversations (snoozed_until) WHERE snoozed_until IS NOT NULL;
CREATE INDEX conversations_snoozed_owner ON conversations (workspace_id, snoozed_until) WHERE snoozed_until IS NOT NULL;
CREATE INDEX conversations_snoozed_page ON conversations (workspace_id, id) WHERE snoozed_until IS NOT NULL;

CREATE OR REPLACE FUNCTION note_changed_conversations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'conversation', after.id FROM after JOIN before USING (id)
    WHERE (after.contact_id, after.status, after.assignee_id, after.unread, after.window_ends_at,
            after.last_message_at, after.labels, after.snoozed_until)
        IS DISTINCT FROM (before.contact_id, before.status, before.assignee_id, before.unread, before.window_ends_at,
            before.last_message_at, before.labels, before.snoozed_until)
    ORDER BY after.id;
    RETURN NULL;
END $$;
