-- `is_awaited`: the run that started it waits until it ends. `result`: what its `stop` returns; null: nothing.
ALTER TABLE runs ADD COLUMN is_awaited boolean NOT NULL DEFAULT false, ADD COLUMN result json;

-- Not validated: that would read the whole table under its lock, and every row was checked when it was written.
ALTER TABLE runs DROP CONSTRAINT runs_waits_for_check, ADD CONSTRAINT runs_waits_for_check
    CHECK (waits_for IN ('time', 'reply', 'response', 'run', 'quiet_hours', 'member', 'pause')) NOT VALID;
