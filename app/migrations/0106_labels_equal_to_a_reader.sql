-- Lists by label find what is equal to a reader, as searches for tags do. What is stored stays as it was written.
-- `label` has the collation "C", which knows no letters but those of ASCII.
DROP INDEX conversation_labels_status_page;
CREATE INDEX conversation_labels_status_page ON conversation_labels
    (workspace_id, plain_search(lower(label COLLATE "default")), status, conversation_id);
CREATE INDEX conversation_labels_page ON conversation_labels
    (workspace_id, plain_search(lower(label COLLATE "default")), conversation_id);
