-- A listener that comes back reads what it missed of its own workspace, not of all.
CREATE INDEX updates_of_workspace ON updates (workspace_id, transaction_id);
