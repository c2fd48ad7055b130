-- Goals of automations; counts of the runs of a version: by status, and of how they passed each step.

-- `goal_until`: until when an event may reach the goal; null if there is none, or it has been reached.
ALTER TABLE automations ADD COLUMN goal json;
ALTER TABLE runs ADD COLUMN goal_until timestamptz, ADD COLUMN goal_reached_at timestamptz;
CREATE INDEX runs_goal ON runs (contact_id, automation_id, id) WHERE goal_until IS NOT NULL;

-- `is_counted`: whether it has been counted by version since it began. Runs of before were not, and never are.
ALTER TABLE runs ADD COLUMN is_counted boolean NOT NULL DEFAULT false;

-- `version` and `hour` (the one in which the run was created): null for what is counted by automation only. `step`: ''
-- for what is counted of whole runs.
ALTER TABLE automation_deltas
    ADD COLUMN version integer, ADD COLUMN hour timestamptz, ADD COLUMN step text NOT NULL DEFAULT '';

-- `grain`: how long the time is in which the runs were created. `starts_at`: when it begins; the epoch for 'all'.
-- `key`: a status of runs, or `goals`; of a step `entered`, `left`, `waiting`, `failed`, or `arm:` and the name of one.
CREATE TABLE run_counts (
    automation_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    grain text COLLATE "C" NOT NULL CHECK (grain IN ('all', 'day', 'hour')),
    starts_at timestamptz NOT NULL,
    step text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (automation_id, version, grain, starts_at, step, key)
) WITH (fillfactor = 70);
CREATE INDEX run_counts_age ON run_counts (grain, starts_at);

-- How often runs passed a step, which `run_counts` has from now on. Nothing read it.
DELETE FROM automation_counts WHERE key LIKE 'step:%';
