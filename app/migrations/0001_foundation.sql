-- Workspaces and who may act in them; contacts; the mail tables (jobs, deliveries) and what they leave behind.
--
-- Identifiers are TypeIDs, compared byte by byte (COLLATE "C"), so that their order is that of creation.
-- A mail table has `due_at` (when a row may next be taken; null: never again) and `claim` (how often it was taken).

CREATE EXTENSION IF NOT EXISTS pg_trgm;

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
CREATE INDEX contacts_updated ON contacts (workspace_id, updated_at);
CREATE INDEX contacts_tags ON contacts USING gin (tags);
CREATE INDEX contacts_search ON contacts USING gin (search gin_trgm_ops);

CREATE TABLE jobs (
    id text COLLATE "C" PRIMARY KEY,
    position bigint GENERATED ALWAYS AS IDENTITY,
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
);
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
);
CREATE INDEX events_contact ON events (contact_id) WHERE contact_id IS NOT NULL;

CREATE TABLE deliveries (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed', 'held', 'cancelled')),
    attempts integer NOT NULL DEFAULT 0,
    step integer NOT NULL DEFAULT 0,
    last_error text,
    resent_from text COLLATE "C",
    due_at timestamptz DEFAULT now(),
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz
);
CREATE INDEX deliveries_mail ON deliveries (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_unfinished ON deliveries (endpoint_id, id) WHERE status IN ('pending', 'held');
CREATE INDEX deliveries_page ON deliveries (workspace_id, id);
CREATE INDEX deliveries_endpoint_page ON deliveries (endpoint_id, id);
CREATE INDEX deliveries_event ON deliveries (event_id);

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
);

CREATE TABLE leases (
    name text PRIMARY KEY,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL
);
