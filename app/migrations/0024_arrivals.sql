-- What comes in over channels, until it is processed; then only its key stays.

-- `sender_key`: the channel and who of its contacts it is about. `key`: unique in the channel. `kind`: what it is, as
-- app/channels/base.py calls it. `payload`: null once it is processed. `next_attempt_at`: when a receipt looks for its
-- message again. `problem`: why it was given up.
CREATE SEQUENCE arrivals_position;
CREATE TABLE arrivals (
    id text COLLATE "C" PRIMARY KEY,
    position bigint NOT NULL DEFAULT nextval('arrivals_position'),
    workspace_id text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    sender_key text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    payload json,
    trace_id text NOT NULL,
    errors integer NOT NULL DEFAULT 0,
    deaths integer NOT NULL DEFAULT 0,
    problem text,
    next_attempt_at timestamptz,
    due_at timestamptz DEFAULT clock_timestamp(),
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX arrivals_key ON arrivals (channel_id, key);
CREATE INDEX arrivals_mail ON arrivals (sender_key, position) WHERE due_at IS NOT NULL;
CREATE INDEX arrivals_waiting ON arrivals (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX arrivals_failed ON arrivals (id) WHERE problem IS NOT NULL;
CREATE INDEX arrivals_old ON arrivals (created_at);
