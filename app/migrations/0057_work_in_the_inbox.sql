-- Labels of conversations.

ALTER TABLE conversations ADD COLUMN labels text[] NOT NULL DEFAULT '{}';

-- A row for each label of a conversation, for lists by label; `status` is that of the conversation.
CREATE TABLE conversation_labels (
    workspace_id text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    status text NOT NULL,
    PRIMARY KEY (workspace_id, label, conversation_id)
);
CREATE INDEX conversation_labels_status_page ON conversation_labels (workspace_id, label, status, conversation_id);
CREATE INDEX conversation_labels_conversation ON conversation_labels (conversation_id);

CREATE FUNCTION list_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM conversation_labels WHERE conversation_id = NEW.id AND label <> ALL (NEW.labels);
    INSERT INTO conversation_labels (workspace_id, label, conversation_id, status)
    SELECT NEW.workspace_id, label, NEW.id, NEW.status FROM unnest(NEW.labels) AS label
    ON CONFLICT (workspace_id, label, conversation_id) DO UPDATE SET status = excluded.status;
    RETURN NULL;
END $$;

-- Nearly all conversations that are written have the labels and the status that they had, or no labels.
CREATE TRIGGER list_labels_of_new AFTER INSERT ON conversations FOR EACH ROW
    WHEN (NEW.labels <> '{}') EXECUTE FUNCTION list_labels();
CREATE TRIGGER list_labels_of_changed AFTER UPDATE ON conversations FOR EACH ROW
    WHEN ((NEW.labels <> '{}' OR OLD.labels <> '{}') AND (NEW.labels, NEW.status) <> (OLD.labels, OLD.status))
    EXECUTE FUNCTION list_labels();

CREATE OR REPLACE FUNCTION note_changed_conversations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'conversation', after.id FROM after JOIN before USING (id)
    WHERE (after.contact_id, after.status, after.assignee_id, after.unread, after.window_ends_at,
            after.last_message_at, after.labels)
        IS DISTINCT FROM (before.contact_id, before.status, before.assignee_id, before.unread, before.window_ends_at,
            before.last_message_at, before.labels)
    ORDER BY after.id;
    RETURN NULL;
END $$;
