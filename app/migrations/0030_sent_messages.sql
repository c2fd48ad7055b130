-- When a message was first known to be sent, which it is billed for once, whatever becomes of it. Not set for what the
-- business has sent without Bellhop, in the provider's own app.
ALTER TABLE messages ADD COLUMN sent_at timestamptz;
CREATE INDEX messages_sent ON messages (sent_at, workspace_id) WHERE sent_at IS NOT NULL;

CREATE FUNCTION note_that_message_is_sent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.sent_at := now();
    RETURN NEW;
END $$;
CREATE TRIGGER messages_inserted_as_sent BEFORE INSERT ON messages FOR EACH ROW
    WHEN (NEW.direction = 'out' AND NEW.status IN ('sent', 'delivered', 'read') AND NEW.author->>'type' <> 'provider')
    EXECUTE FUNCTION note_that_message_is_sent();
CREATE TRIGGER messages_become_sent BEFORE UPDATE OF status ON messages FOR EACH ROW
    WHEN (OLD.sent_at IS NULL AND NEW.direction = 'out' AND NEW.status IN ('sent', 'delivered', 'read')
        AND NEW.author->>'type' <> 'provider')
    EXECUTE FUNCTION note_that_message_is_sent();
