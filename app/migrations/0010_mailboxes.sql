-- One kind of lease for all mail, in a column of its own; events whose deliveries are made after their commit are mail.

-- `deaths`: workers that died while they worked on this job alone. `unknown_since`: no worker so far knew its kind.
ALTER TABLE jobs
    ADD COLUMN leased_until timestamptz,
    ADD COLUMN deaths integer NOT NULL DEFAULT 0,
    ADD COLUMN unknown_since timestamptz;
COMMIT;
UPDATE jobs SET leased_until = due_at, due_at = created_at WHERE due_at > now();
CREATE INDEX jobs_unknown ON jobs (unknown_since) WHERE unknown_since IS NOT NULL;

ALTER TABLE sweeps ADD COLUMN leased_until timestamptz;
COMMIT;
UPDATE sweeps SET leased_until = due_at, due_at = created_at WHERE due_at > now();
COMMIT;

-- `fan_out_after`: the last endpoint that has its delivery of the event.
ALTER TABLE events
    ADD COLUMN due_at timestamptz,
    ADD COLUMN leased_until timestamptz,
    ADD COLUMN claim integer NOT NULL DEFAULT 0,
    ADD COLUMN fan_out_after text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX events_mail ON events (workspace_id, id) WHERE due_at IS NOT NULL;

-- An endpoint gets the events recorded after it was made, in the same transaction too.
ALTER TABLE endpoints ALTER COLUMN created_at SET DEFAULT clock_timestamp();
