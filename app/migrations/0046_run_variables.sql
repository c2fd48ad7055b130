-- `own_variables`: those that steps of the run have set, over `variables`, which it was started with.
ALTER TABLE runs ADD COLUMN own_variables json NOT NULL DEFAULT '{}';
