-- The pages list the tokens of a workspace, newest first.
CREATE INDEX tokens_page ON tokens (workspace_id, id);
DROP INDEX tokens_workspace;
