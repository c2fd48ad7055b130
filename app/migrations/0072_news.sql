-- Notifications about conversations, which end when there is nothing left to look at, and who wants which of them how.

-- `conversation_id`: the conversation that it is about. `amount`: how often that has happened since it was read; such a
-- row gets a new identifier each time, so that it is the newest again.
ALTER TABLE notifications
    ADD COLUMN conversation_id text COLLATE "C",
    ADD COLUMN amount integer NOT NULL DEFAULT 1,
    DROP CONSTRAINT notifications_kind_check,
    ADD CONSTRAINT notifications_kind_check CHECK (kind IN ('endpoint_stopped', 'import_ended', 'usage_high',
        'channel_refused', 'mentioned', 'assigned', 'contact_wrote', 'new_conversation', 'woken'))
        NOT VALID;
COMMIT;
ALTER TABLE notifications VALIDATE CONSTRAINT notifications_kind_check;
COMMIT;
UPDATE notifications SET conversation_id = detail->>'conversation_id' WHERE kind = 'mentioned';
CREATE INDEX notifications_conversation ON notifications (conversation_id) WHERE conversation_id IS NOT NULL;

-- Whoever does not want to know of new conversations reads none of them, however many there are.
DROP INDEX notifications_page;
CREATE INDEX notifications_page ON notifications (workspace_id, id)
    WHERE member_id IS NULL AND kind <> 'new_conversation';
CREATE INDEX notifications_new_conversations ON notifications (workspace_id, id) WHERE kind = 'new_conversation';

-- `notices`: what a member wants and how, such as `assigned:email`; null: what everybody gets who has not chosen.
-- `shows_texts`: whether notifications of the browser have names and texts.
ALTER TABLE members
    ADD COLUMN notices text[],
    ADD COLUMN shows_texts boolean NOT NULL DEFAULT true;

-- A notification that has happened again is news, too.
CREATE FUNCTION note_repeated_notifications() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id, actor_id)
    SELECT workspace_id, 'notification', id, member_id FROM after
    WHERE NOT EXISTS (SELECT FROM before WHERE before.id = after.id) ORDER BY id;
    RETURN NULL;
END $$;
CREATE TRIGGER note_changed AFTER UPDATE ON notifications
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION note_repeated_notifications();

-- What nobody has to look at any more: of a closed conversation all but mentions, of one that somebody else has now what
-- the former assignee was told, and that it is new once it is assigned or somebody has read or answered it.
CREATE FUNCTION end_notifications() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM notifications WHERE conversation_id = NEW.id AND kind <> 'mentioned' AND (
        NEW.status = 'closed'
        OR kind <> 'new_conversation' AND member_id IS DISTINCT FROM NEW.assignee_id
        OR kind = 'new_conversation' AND (NEW.assignee_id IS NOT NULL OR NEW.unread = 0 OR NEW.waiting_since IS NULL));
    RETURN NULL;
END $$;
CREATE TRIGGER end_notifications AFTER UPDATE ON conversations FOR EACH ROW
    WHEN ((OLD.status, OLD.assignee_id, OLD.unread = 0, OLD.waiting_since IS NULL)
        IS DISTINCT FROM (NEW.status, NEW.assignee_id, NEW.unread = 0, NEW.waiting_since IS NULL)
        AND (NEW.status = 'closed' OR OLD.assignee_id IS DISTINCT FROM NEW.assignee_id OR NEW.assignee_id IS NULL))
    EXECUTE FUNCTION end_notifications();
