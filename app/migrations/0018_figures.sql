-- Figures by minute and hour, groups of failures, and what searches need.

-- When the attempt was recorded, on the database's clock, which is the time of its transaction. Attempts are only
-- appended, so an index of block ranges finds those of the last seconds, and costs next to nothing to keep.
ALTER TABLE attempts ADD COLUMN recorded_at timestamptz;
ALTER TABLE attempts ALTER COLUMN recorded_at SET DEFAULT now();
CREATE INDEX attempts_recorded ON attempts USING brin (recorded_at) WITH (autosummarize = on);
-- What a group of failures has in it now. Deliveries that succeed never have an entry.
CREATE INDEX deliveries_failures ON deliveries (endpoint_id, status, last_error_code, last_status, id)
    WHERE status IN ('failed', 'held');
CREATE INDEX jobs_failed ON jobs (finished_at) WHERE status = 'failed';
CREATE INDEX jobs_trace ON jobs (trace_id);

-- How far the rows behind the figures have been counted.
CREATE TABLE figure_progress (
    name text PRIMARY KEY,
    counted_until timestamptz NOT NULL
);

-- Attempts at deliveries, by the time they were recorded. An empty `endpoint_id` stands for the whole workspace, and an
-- empty `workspace_id` for all of them. `final`: attempts after which the delivery had failed. `buckets`: attempts by
-- duration, within the bounds that `app/domain/figures.py` names.
CREATE TABLE delivery_minutes (
    workspace_id text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    attempts integer NOT NULL,
    delivered integer NOT NULL,
    final integer NOT NULL,
    duration_ms bigint NOT NULL,
    buckets integer[] NOT NULL,
    PRIMARY KEY (workspace_id, endpoint_id, starts_at)
) WITH (fillfactor = 70);
CREATE INDEX delivery_minutes_age ON delivery_minutes (starts_at);
CREATE TABLE delivery_hours (
    workspace_id text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    attempts integer NOT NULL,
    delivered integer NOT NULL,
    final integer NOT NULL,
    duration_ms bigint NOT NULL,
    buckets integer[] NOT NULL,
    PRIMARY KEY (workspace_id, endpoint_id, starts_at)
) WITH (fillfactor = 70);
CREATE INDEX delivery_hours_age ON delivery_hours (starts_at);

-- Failures with one cause. `subject`: the endpoint, the kind of the job, or the automation. `code`: the code of the
-- error, the slug of the problem, or the code of the run's failure. `status`: the receiver's, or the problem's; 0: none.
CREATE TABLE failure_groups (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('delivery', 'job', 'run')),
    workspace_id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    code text COLLATE "C" NOT NULL,
    status integer NOT NULL,
    first_seen_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    UNIQUE (workspace_id, kind, subject, code, status)
) WITH (fillfactor = 70);
CREATE INDEX failure_groups_newest ON failure_groups (last_seen_at);
CREATE INDEX failure_groups_page ON failure_groups (workspace_id, last_seen_at);

CREATE TABLE failure_minutes (
    group_id bigint NOT NULL,
    starts_at timestamptz NOT NULL,
    failed integer NOT NULL,
    final integer NOT NULL,
    PRIMARY KEY (group_id, starts_at)
) WITH (fillfactor = 70);
CREATE INDEX failure_minutes_age ON failure_minutes (starts_at);
CREATE TABLE failure_hours (
    group_id bigint NOT NULL,
    starts_at timestamptz NOT NULL,
    failed integer NOT NULL,
    final integer NOT NULL,
    PRIMARY KEY (group_id, starts_at)
) WITH (fillfactor = 70);
CREATE INDEX failure_hours_age ON failure_hours (starts_at);

-- Writes by the minute in which they were accepted, and what had become of them some minutes later. An empty
-- `workspace_id` stands for all.
CREATE TABLE job_minutes (
    workspace_id text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    accepted integer NOT NULL,
    succeeded integer NOT NULL,
    failed integer NOT NULL,
    PRIMARY KEY (workspace_id, starts_at)
);
CREATE INDEX job_minutes_age ON job_minutes (starts_at);

-- Samples: how much was due in a queue (counted up to a limit), and for how long the oldest of it.
CREATE TABLE queue_minutes (
    queue text NOT NULL,
    starts_at timestamptz NOT NULL,
    depth integer NOT NULL,
    oldest_seconds real NOT NULL,
    PRIMARY KEY (queue, starts_at)
);
CREATE INDEX queue_minutes_age ON queue_minutes (starts_at);
