-- Notes of conversations, which only members see, and notifications for one member.

CREATE TABLE notes (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    author json NOT NULL,
    text text NOT NULL,
    mentions text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notes_conversation ON notes (conversation_id, id);
CREATE INDEX notes_contact ON notes (contact_id, id);

-- `member_id`: whom it is for; NULL: all members.
ALTER TABLE notifications
    ADD COLUMN member_id text COLLATE "C",
    DROP CONSTRAINT notifications_kind_check,
    ADD CONSTRAINT notifications_kind_check
        CHECK (kind IN ('endpoint_stopped', 'import_ended', 'usage_high', 'channel_refused', 'mentioned')) NOT VALID;
COMMIT;
ALTER TABLE notifications VALIDATE CONSTRAINT notifications_kind_check;
COMMIT;
DROP INDEX notifications_page;
CREATE INDEX notifications_page ON notifications (workspace_id, id) WHERE member_id IS NULL;
CREATE INDEX notifications_of_member ON notifications (member_id, id) WHERE member_id IS NOT NULL;

CREATE FUNCTION note_notifications() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id, actor_id)
    SELECT workspace_id, 'notification', id, member_id FROM after ORDER BY id;
    RETURN NULL;
END $$;

DROP TRIGGER note_inserted ON notifications;
CREATE TRIGGER note_inserted AFTER INSERT ON notifications
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_notifications();
