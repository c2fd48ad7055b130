-- Notes that are added and deleted appear on the pages of members at once.

CREATE TRIGGER note_inserted AFTER INSERT ON notes
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('note');
CREATE TRIGGER note_deleted AFTER DELETE ON notes
    REFERENCING OLD TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('note');
