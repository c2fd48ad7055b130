-- Runs that a pause holds. The scheduler looks here for those whose automation is no longer paused.
CREATE INDEX runs_held ON runs (automation_id, id) WHERE reason = 'pause' AND due_at IS NULL;
