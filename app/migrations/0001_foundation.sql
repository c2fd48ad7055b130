-- Workspaces and who may act in them; contacts; the mail tables (jobs, deliveries) and their history.
--
-- Identifiers are TypeIDs, compared byte by byte (COLLATE "C"), so that their order is that of creation.
-- A mail table has `due_at` (when a row may next be claimed; null: never again) and `claim` (the number of that claim).
-- Jobs, events, deliveries and attempts are partitioned by ranges of identifiers, which are ranges of time; their
-- partitions are created and dropped by `app/partitions.py`. Rows without a partition go to the default one.

CREATE TABLE workspaces (
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    digest bytea NOT NULL UNIQUE,
    restrictions text[],
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX tokens_workspace ON tokens (workspace_id);

CREATE TABLE members (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    email text NOT NULL,
    password_hash text NOT NULL,
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'agent')),
    is_support boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX members_email ON members (workspace_id, lower(email));

CREATE TABLE contacts (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    external_id text,
    email text,
    phone text,
    first_name text,
    last_name text,
    locale text,
    timezone text,
    tags text[] NOT NULL DEFAULT '{}',
    custom_fields jsonb NOT NULL DEFAULT '{}',
    opted_out boolean NOT NULL DEFAULT false,
    -- The number of its segment in contact_segments.
    segment integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    search text GENERATED ALWAYS AS (lower(
        coalesce(first_name, '') || ' ' || coalesce(last_name, '') || ' ' || coalesce(email, '') || ' '
        || coalesce(phone, '') || ' ' || coalesce(external_id, ''))) STORED
);
CREATE INDEX contacts_page ON contacts (workspace_id, id);
CREATE UNIQUE INDEX contacts_external_id ON contacts (workspace_id, external_id);
CREATE UNIQUE INDEX contacts_email ON contacts (workspace_id, lower(email));
CREATE UNIQUE INDEX contacts_phone ON contacts (workspace_id, phone);

CREATE SEQUENCE jobs_position;
CREATE TABLE jobs (
    id text COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL DEFAULT nextval('jobs_position'),
    workspace_id text COLLATE "C" NOT NULL,
    token_id text COLLATE "C",
    kind text NOT NULL,
    status text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'succeeded', 'failed')),
    payload json,
    effect text CHECK (effect IN ('made', 'changed', 'deleted')),
    resource_type text,
    resource_id text COLLATE "C",
    problem json,
    trace_id text NOT NULL,
    due_at timestamptz DEFAULT now(),
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz
) PARTITION BY RANGE (id);
CREATE TABLE jobs_default PARTITION OF jobs DEFAULT;
CREATE INDEX jobs_mail ON jobs (workspace_id, position) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_page ON jobs (workspace_id, id);
CREATE INDEX jobs_of_pending_resource ON jobs (resource_id) WHERE due_at IS NOT NULL AND resource_id IS NOT NULL;
CREATE INDEX jobs_kept_payload ON jobs (workspace_id) WHERE status = 'failed' AND payload IS NOT NULL;

CREATE TABLE idempotency_keys (
    token_id text COLLATE "C" NOT NULL,
    key uuid NOT NULL,
    fingerprint bytea NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

CREATE TABLE endpoints (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    address text NOT NULL,
    events text[] NOT NULL,
    description text,
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'stopped', 'deleted')),
    stop_reason text,
    stopped_at timestamptz,
    consecutive_failures integer NOT NULL DEFAULT 0,
    -- Whether an attempt has succeeded since the last failure.
    answered boolean NOT NULL DEFAULT false,
    -- Until then it counts as slow, and the processes of the slow lane serve it.
    slow_until timestamptz,
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_secret_until timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX endpoints_page ON endpoints (workspace_id, id);
CREATE INDEX endpoints_not_served ON endpoints (state, id) WHERE state <> 'active';

CREATE TABLE events (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    contact_id text COLLATE "C",
    job_id text COLLATE "C",
    trace_id text NOT NULL,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL
) PARTITION BY RANGE (id);
CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE INDEX events_contact ON events (contact_id) WHERE contact_id IS NOT NULL;

CREATE TABLE deliveries (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    contact_id text COLLATE "C",
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed', 'held', 'cancelled')),
    attempts integer NOT NULL DEFAULT 0,
    step integer NOT NULL DEFAULT 0,
    -- What the next attempt comes of.
    trigger text NOT NULL DEFAULT 'automatic' CHECK (trigger IN ('automatic', 'resend')),
    last_error text,
    resent_from text COLLATE "C",
    due_at timestamptz DEFAULT now(),
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz
) PARTITION BY RANGE (id);
CREATE TABLE deliveries_default PARTITION OF deliveries DEFAULT;
CREATE INDEX deliveries_mail ON deliveries (endpoint_id, due_at) WHERE due_at IS NOT NULL;
-- Retries by time. First attempts, the majority, are not in this index.
CREATE INDEX deliveries_retries ON deliveries (due_at) WHERE due_at IS NOT NULL AND step > 0;
CREATE INDEX deliveries_undelivered ON deliveries (endpoint_id, id) WHERE status IN ('pending', 'held', 'failed');
CREATE INDEX deliveries_page ON deliveries (workspace_id, id);
CREATE INDEX deliveries_endpoint_page ON deliveries (endpoint_id, id);
CREATE INDEX deliveries_contact ON deliveries (contact_id) WHERE contact_id IS NOT NULL;

CREATE TABLE attempts (
    delivery_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    at timestamptz NOT NULL,
    duration_ms integer NOT NULL,
    status integer,
    error text,
    response_body text,
    trigger text NOT NULL DEFAULT 'automatic' CHECK (trigger IN ('automatic', 'resend')),
    PRIMARY KEY (delivery_id, number)
) PARTITION BY RANGE (delivery_id);
CREATE TABLE attempts_default PARTITION OF attempts DEFAULT;

-- Bulk changes to the deliveries of an endpoint, made in small transactions; a mail table, owned by the endpoint.
CREATE TABLE sweeps (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    endpoint_id text COLLATE "C" NOT NULL,
    action text NOT NULL CHECK (action IN ('hold', 'release', 'resend', 'cancel')),
    statuses text[] NOT NULL,
    kinds text[],
    since timestamptz,
    until timestamptz,
    -- Its progress: it goes through the identifiers after `position`, up to `last_id`.
    position text COLLATE "C" NOT NULL DEFAULT '',
    last_id text COLLATE "C" NOT NULL,
    matched integer,
    changed integer NOT NULL DEFAULT 0,
    skipped integer NOT NULL DEFAULT 0,
    job_id text COLLATE "C",
    trace_id text NOT NULL,
    due_at timestamptz DEFAULT now(),
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
CREATE INDEX sweeps_mail ON sweeps (endpoint_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX sweeps_page ON sweeps (workspace_id, id);
CREATE INDEX sweeps_finished ON sweeps (finished_at);

-- Who did what to deliveries, endpoints and secrets.
CREATE TABLE audit_entries (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    action text NOT NULL,
    actor_type text NOT NULL CHECK (actor_type IN ('token', 'member', 'command')),
    actor_id text COLLATE "C",
    target_type text NOT NULL,
    target_id text COLLATE "C" NOT NULL,
    -- The target, if it is an endpoint, or the endpoint of the target.
    endpoint_id text COLLATE "C",
    detail json NOT NULL DEFAULT '{}',
    job_id text COLLATE "C",
    trace_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX audit_entries_page ON audit_entries (workspace_id, id);
CREATE INDEX audit_entries_endpoint ON audit_entries (endpoint_id, id);

CREATE TABLE leases (
    name text PRIMARY KEY,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL
);
