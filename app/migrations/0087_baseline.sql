-- The schema of release 0.1.0, which every database begins with; later files change it. Databases that the 68 files of
-- that release made have it, too, so this file does not run on them (`app/sql/schema.py`).
--
-- Identifiers are TypeIDs. They are compared byte by byte (COLLATE "C"), so their order is the order of creation.
--
-- Rows of a mail table are claimed by workers. `due_at`: when a row may next be claimed; null if there is nothing to
-- do. `leased_until`: until when the latest claim holds. `claim`: the number of that claim. `next_attempt_at`: when a
-- row that waits becomes due again. `deaths`: how many workers died while they had only this row. `trace_id`: the
-- request that the row comes from.
--
-- Jobs, events, deliveries, attempts and run_steps are partitioned by ranges of identifiers, which are ranges of time.
-- `app/partitions.py` creates and drops their partitions; rows that fit none are in the default partition.
--
-- Where `workspace_id` may be null although every row belongs to a workspace, rows from before that column do not name
-- it.

-- Workspaces, and the people and tokens that act in them.

-- `opt_out_words`: null for the built-in lists.
CREATE TABLE workspaces (
    id text COLLATE "C" PRIMARY KEY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    timezone text NOT NULL DEFAULT 'UTC',
    quiet_hours json,
    opt_out_words json
);

-- One for each person. `password_hash`: null until its owner has set a password. `wants_email`: whether they get
-- notifications by e-mail. `mailed_at`: when they last did.
CREATE TABLE accounts (
    id text COLLATE "C" PRIMARY KEY,
    email text NOT NULL,
    password_hash text,
    is_support boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    wants_email boolean NOT NULL DEFAULT true,
    mailed_at timestamptz
);
CREATE UNIQUE INDEX accounts_email ON accounts (lower(email));

-- Accounts in workspaces. `read_until` and `mailed_until`: the last notification that the member has read, and the last
-- that was in an e-mail to them. `capacity`: with this many open conversations, the member is assigned no more by rule;
-- null if there is no limit. `assigned_at`: when the rule last assigned one. `notices`: the wanted notifications, such
-- as `assigned:email`; null for the default. `shows_texts`: whether notifications of the browser show names and texts.
CREATE TABLE members (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    role text NOT NULL CHECK (role IN ('owner', 'admin', 'agent')),
    created_at timestamptz NOT NULL DEFAULT now(),
    account_id text COLLATE "C" NOT NULL REFERENCES accounts,
    read_until text COLLATE "C" NOT NULL DEFAULT '',
    mailed_until text COLLATE "C" NOT NULL DEFAULT '',
    availability text NOT NULL DEFAULT 'available' CHECK (availability IN ('available', 'away')),
    capacity integer,
    assigned_at timestamptz,
    notices text[],
    shows_texts boolean NOT NULL DEFAULT true
);
CREATE UNIQUE INDEX members_account ON members (account_id, workspace_id);
CREATE INDEX members_page ON members (workspace_id, id);

-- `token_hash`: SHA-256 of the cookie's value. `seen_at` is accurate to the minute.
CREATE TABLE sessions (
    id text COLLATE "C" PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    account_id text COLLATE "C" NOT NULL REFERENCES accounts,
    address text NOT NULL,
    user_agent text NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz
);
CREATE INDEX sessions_account ON sessions (account_id, id);
CREATE INDEX sessions_age ON sessions (expires_at);

-- How many attempts to sign in have failed until `ends_at`, by account, by address, and by both. `key`: a digest.
CREATE TABLE sign_in_failures (
    key bytea PRIMARY KEY,
    failures integer NOT NULL,
    ends_at timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_age ON sign_in_failures (ends_at);

-- Links that set a password once (`reset`), or make their account a member of a workspace (`invitation`).
CREATE TABLE password_links (
    id text COLLATE "C" PRIMARY KEY,
    token_hash bytea NOT NULL UNIQUE,
    account_id text COLLATE "C" NOT NULL REFERENCES accounts,
    purpose text NOT NULL CHECK (purpose IN ('invitation', 'reset')),
    workspace_id text COLLATE "C" REFERENCES workspaces,
    role text CHECK (role IN ('owner', 'admin', 'agent')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    CHECK ((purpose = 'invitation') = (workspace_id IS NOT NULL AND role IS NOT NULL))
);
CREATE INDEX password_links_account ON password_links (account_id, id);
CREATE INDEX password_links_workspace ON password_links (workspace_id, id) WHERE workspace_id IS NOT NULL;
CREATE INDEX password_links_age ON password_links (expires_at);

-- Support staff act in a workspace during a visit, and say why. Kept, because the audit log names them.
CREATE TABLE visits (
    id text COLLATE "C" PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL REFERENCES accounts,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    reason text NOT NULL,
    ticket text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX visits_account ON visits (account_id, workspace_id, id);

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
CREATE INDEX tokens_page ON tokens (workspace_id, id);

-- Contacts.

-- The search keys of a contact, for `q` and `tag`: a number for every two and three consecutive characters of its text
-- and for each tag, different in each segment. So a search never reads what other workspaces have, and even two letters
-- or punctuation are found by index. Two texts may share numbers, so the text itself is compared as well. The numbers
-- of a segment are adjacent, so contacts written together change few places of the index.
--
-- The key of a tag is that of its ASCII letters in lower case, so that tags which a condition takes for equal share a
-- key. Tags with characters that may fold into ASCII ('ß' into 'ss') all have the key of 'ß'. A tag beyond ASCII has a
-- second key, of exactly this tag, so that filters by tag look at few others.
CREATE FUNCTION contact_keys(workspace_id text, segment integer, search text, tags text[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
DECLARE
    seed bigint := hashtextextended(workspace_id, segment) << 32;
    keys bigint[] := '{}';
    tag text;
    folded text;
BEGIN
    FOR place IN 1 .. char_length(search) - 1 LOOP
        keys := keys || (seed # (hashtextextended(substr(search, place, 2), 0) & 4294967295))
            || (seed # (hashtextextended(substr(search, place, 3), 0) & 4294967295));
    END LOOP;
    FOREACH tag IN ARRAY tags LOOP
        folded := tag;
        IF octet_length(tag) <> char_length(tag) THEN
            keys := keys || (seed # (hashtextextended(tag, 2) & 4294967295));
            folded := CASE
                WHEN tag ~ U&'[\0085\00a0\00df\0130\0149\017f\01f0\1680\1e96-\1e9a\1e9e\2000-\200a\2028\2029\202f\205f\212a\3000\fb00-\fb06]'
                THEN U&'\00df' ELSE regexp_replace(tag, '[^\x01-\x7f]', '', 'g') END;
        END IF;
        folded := lower(btrim(folded, E' \t\n\x0b\f\r\x1c\x1d\x1e\x1f') COLLATE "C");
        keys := keys || (seed # (hashtextextended(folded, 1) & 4294967295));
    END LOOP;
    RETURN keys;
END
$$;

-- The keys that a search looks up: as few as cover every character, and at most ten, because each costs a lookup.
CREATE FUNCTION contact_keys_sought(workspace_id text, segment integer, sought text, tags text[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    seed bigint := hashtextextended(workspace_id, segment) << 32;
    length integer := char_length(sought);
    keys bigint[] := contact_keys(workspace_id, segment, '', tags);
BEGIN
    FOR place IN 1 .. length BY greatest(3, (length + 9) / 10) LOOP
        keys := keys
            || (seed # (hashtextextended(substr(sought, least(place, greatest(length - 2, 1)), 3), 0) & 4294967295));
    END LOOP;
    RETURN keys;
END
$$;

-- `segment`: the number of the contact's row in contact_segments.
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
CREATE INDEX contacts_updated ON contacts (workspace_id, segment, updated_at);
-- A search scans the index's pending list once for every segment, so the list is limited to 256 kB.
CREATE INDEX contacts_keys ON contacts USING gin (contact_keys(workspace_id, segment, search, tags))
    WITH (gin_pending_list_limit = 256);

-- Some thousand contacts of a workspace each, in the order of their identifiers. A search goes through them from the
-- newest to the oldest. A contact belongs to the last segment that begins at or below its identifier, or to segment 0,
-- which has no row.
CREATE TABLE contact_segments (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    number integer NOT NULL,
    from_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, number)
);

-- Contacts (`id`) that were merged into another (`kept_id`), while some of their rows have not been moved yet.
CREATE TABLE pending_merges (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    kept_id text COLLATE "C" NOT NULL
);
CREATE INDEX pending_merges_kept ON pending_merges (kept_id);

-- Two contacts that may be the same person. A pair is stored once, with the smaller identifier first.
CREATE TABLE suggested_merges (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    contact_id text COLLATE "C" NOT NULL,
    other_id text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (contact_id, other_id)
);
CREATE INDEX suggested_merges_other ON suggested_merges (other_id);

-- Groups of contacts, defined by a filter.
CREATE TABLE segments (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    filter json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX segments_page ON segments (workspace_id, id);

-- `done`: lines that have taken effect. `failed`: lines with a row in import_errors. A finished import has no lines
-- left.
CREATE TABLE imports (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    job_id text COLLATE "C" NOT NULL,
    total integer NOT NULL,
    done integer NOT NULL DEFAULT 0,
    failed integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
CREATE INDEX imports_age ON imports (created_at);

-- Lines that are still to be applied: each is deleted in the transaction that applies it.
CREATE TABLE import_lines (
    import_id text COLLATE "C" NOT NULL REFERENCES imports ON DELETE CASCADE,
    number integer NOT NULL,
    body json NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (import_id, number)
);

CREATE TABLE import_errors (
    import_id text COLLATE "C" NOT NULL REFERENCES imports ON DELETE CASCADE,
    number integer NOT NULL,
    problem json NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (import_id, number)
);

CREATE TABLE sales (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    -- Null once the contact is deleted: the amount stays for the books.
    contact_id text COLLATE "C",
    -- Without a scale: it keeps the decimal places that it is given, which are those of its currency.
    amount numeric NOT NULL CHECK (amount >= 0 AND amount < 1e15),
    currency text NOT NULL,
    reference text,
    occurred_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sales_page ON sales (workspace_id, id);
CREATE UNIQUE INDEX sales_reference ON sales (workspace_id, reference);
CREATE INDEX sales_occurred ON sales (workspace_id, occurred_at, id);
CREATE INDEX sales_contact ON sales (contact_id, workspace_id, id) WHERE contact_id IS NOT NULL;
CREATE INDEX sales_contact_occurred ON sales (contact_id, workspace_id, occurred_at, id) WHERE contact_id IS NOT NULL;

CREATE TABLE bookings (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    contact_id text COLLATE "C" NOT NULL,
    title text NOT NULL,
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL CHECK (ends_at > starts_at),
    status text NOT NULL DEFAULT 'booked' CHECK (status IN ('booked', 'cancelled')),
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX bookings_page ON bookings (workspace_id, id);
CREATE INDEX bookings_status ON bookings (workspace_id, status, id);
CREATE INDEX bookings_starts ON bookings (workspace_id, starts_at, id);
CREATE INDEX bookings_status_starts ON bookings (workspace_id, status, starts_at, id);
CREATE INDEX bookings_contact ON bookings (contact_id, workspace_id, id);
CREATE INDEX bookings_contact_starts ON bookings (contact_id, workspace_id, starts_at, id);

-- Writes.

-- Writes, accepted and then done by workers; mail of the workspace. `token_id`: the token, member or visit that asked.
-- `progress`: how far a long write is, which is done in parts; its format depends on the kind. `unknown_since`: since
-- when no worker has known its kind. `replayed_as`: the job that replays this failed one.
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
    finished_at timestamptz,
    progress json,
    leased_until timestamptz,
    deaths integer NOT NULL DEFAULT 0,
    unknown_since timestamptz,
    replayed_from text COLLATE "C",
    replayed_as text COLLATE "C",
    discarded_at timestamptz,
    discard_reason text
) PARTITION BY RANGE (id);
CREATE TABLE jobs_default PARTITION OF jobs DEFAULT;
CREATE INDEX jobs_mail ON jobs (workspace_id, position) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_page ON jobs (workspace_id, id);
CREATE INDEX jobs_of_pending_resource ON jobs (resource_id) WHERE due_at IS NOT NULL AND resource_id IS NOT NULL;
CREATE INDEX jobs_kept_payload ON jobs (workspace_id) WHERE status = 'failed' AND payload IS NOT NULL;
CREATE INDEX jobs_filtered_page ON jobs (workspace_id, kind, status, id);
CREATE INDEX jobs_unknown ON jobs (unknown_since) WHERE unknown_since IS NOT NULL;
CREATE INDEX jobs_failures_page ON jobs (workspace_id, id)
    WHERE status = 'failed' AND replayed_as IS NULL AND discarded_at IS NULL;
CREATE INDEX jobs_failed ON jobs (finished_at) WHERE status = 'failed';
CREATE INDEX jobs_trace ON jobs (trace_id);
-- For pages that list the failed writes about a contact.
CREATE INDEX jobs_failed_of_contact ON jobs ((coalesce(payload->>'contact_id', resource_id)), id)
    WHERE status = 'failed';

CREATE TABLE idempotency_keys (
    token_id text COLLATE "C" NOT NULL,
    key uuid NOT NULL,
    fingerprint bytea NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    workspace_id text COLLATE "C",
    PRIMARY KEY (token_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);

-- Webhooks.

-- `slow_until`: until then, the processes of the slow lane serve it. `probe_at`: when the next probe may go out, or the
-- end of the lease of the one under way; null if the endpoint is not probed. `paced_until`: when the next delivery may
-- be claimed, if there is a limit. `head_id`: the delivery of an ordered endpoint that was claimed last.
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
    slow_until timestamptz,
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_secret_until timestamptz,
    -- Not now(): an endpoint gets the events recorded after it was made, even those of the same transaction.
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    probe_at timestamptz,
    max_per_second integer CHECK (max_per_second BETWEEN 1 AND 1000),
    paced_until timestamptz,
    ordered boolean NOT NULL DEFAULT false,
    head_id text COLLATE "C"
);
CREATE INDEX endpoints_page ON endpoints (workspace_id, id);
CREATE INDEX endpoints_not_served ON endpoints (state, id) WHERE state <> 'active';

-- Mail of the workspace until it has its runs and deliveries. `fan_out_after`: the last automation or endpoint that has
-- its run or delivery; automations sort first. `run_id`: the run that caused the event. `depth`: the number of
-- automations between the event and the outside.
CREATE TABLE events (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    contact_id text COLLATE "C",
    job_id text COLLATE "C",
    trace_id text NOT NULL,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    fan_out_after text COLLATE "C" NOT NULL DEFAULT '',
    run_id text COLLATE "C",
    depth integer NOT NULL DEFAULT 0
) PARTITION BY RANGE (id);
CREATE TABLE events_default PARTITION OF events DEFAULT;
-- To count the events of a workspace in the last minutes, which usage_days does not have yet.
CREATE INDEX events_of_contacts ON events (workspace_id, id) WHERE contact_id IS NOT NULL;
CREATE INDEX events_contact ON events (contact_id, id) WHERE contact_id IS NOT NULL;
CREATE INDEX events_mail ON events (workspace_id, id) WHERE due_at IS NOT NULL;
-- The list of all kinds merges the newest of every kind, so that an event costs one entry and not two.
CREATE INDEX events_kind_page ON events (workspace_id, kind, id);
-- The events of a contact whose runs have not been made yet.
CREATE INDEX events_unfollowed ON events (contact_id) WHERE due_at IS NOT NULL AND fan_out_after < 'aut_~';

-- Mail of the endpoint. `attempts` counts all of them, `tries` those of the present schedule of retries, which a resend
-- starts anew. `trigger`: the reason for the next attempt. `last_error` and its code may be a fault of our own, which
-- is no attempt; `last_status` is that of the last attempt. No index contains `leased_until`, so a claim changes no
-- index while the page has room; the fillfactor reserves that room.
CREATE TABLE deliveries (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    event_id text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    contact_id text COLLATE "C",
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'failed', 'held', 'cancelled')),
    attempts integer NOT NULL DEFAULT 0,
    -- The constraint's name is that of databases which the 68 files made: the column was once called `step`.
    tries integer CONSTRAINT deliveries_step_not_null NOT NULL DEFAULT 0,
    trigger text NOT NULL DEFAULT 'automatic' CHECK (trigger IN ('automatic', 'resend')),
    last_error text,
    resent_from text COLLATE "C",
    due_at timestamptz DEFAULT now(),
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    delivered_at timestamptz,
    leased_until timestamptz,
    next_attempt_at timestamptz,
    last_error_code text,
    last_status integer
) PARTITION BY RANGE (id);
CREATE TABLE deliveries_default PARTITION OF deliveries DEFAULT WITH (fillfactor = 45);
CREATE INDEX deliveries_mail ON deliveries (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_page ON deliveries (workspace_id, id);
CREATE INDEX deliveries_endpoint_page ON deliveries (endpoint_id, id);
CREATE INDEX deliveries_kind_page ON deliveries (workspace_id, kind, id);
-- Without `delivered`: most deliveries are, and are found in page order.
CREATE INDEX deliveries_status_page ON deliveries (workspace_id, status, id) WHERE status <> 'delivered';
CREATE INDEX deliveries_waiting ON deliveries (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
-- Deliveries that succeed are in neither of these two. Those with a status of 2xx are found in page order.
CREATE INDEX deliveries_error_code_page ON deliveries (workspace_id, last_error_code, id)
    WHERE last_error_code IS NOT NULL;
CREATE INDEX deliveries_status_code_page ON deliveries (workspace_id, last_status, id)
    WHERE last_error_code IS NOT NULL;
CREATE INDEX deliveries_contact ON deliveries (contact_id, id) WHERE contact_id IS NOT NULL;
CREATE INDEX deliveries_event ON deliveries (event_id);
-- Finds the first unfinished delivery of an endpoint without passing over those that have failed.
CREATE INDEX deliveries_undelivered ON deliveries (endpoint_id, (status = 'pending'), id)
    WHERE status IN ('pending', 'held', 'failed');
-- The deliveries in a group of failures. Those that succeed never have an entry.
CREATE INDEX deliveries_failures ON deliveries (endpoint_id, status, last_error_code, last_status, id)
    WHERE status IN ('failed', 'held');

-- `recorded_at`: the time of the transaction that recorded the attempt.
CREATE TABLE attempts (
    delivery_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    at timestamptz NOT NULL,
    duration_ms integer NOT NULL,
    status integer,
    error text,
    response_body text,
    trigger text NOT NULL DEFAULT 'automatic' CHECK (trigger IN ('automatic', 'resend')),
    error_code text,
    recorded_at timestamptz DEFAULT now(),
    workspace_id text COLLATE "C",
    PRIMARY KEY (delivery_id, number)
) PARTITION BY RANGE (delivery_id);
CREATE TABLE attempts_default PARTITION OF attempts DEFAULT;
-- Attempts are only appended, so an index of block ranges finds the latest, and costs next to nothing to keep.
CREATE INDEX attempts_recorded ON attempts USING brin (recorded_at) WITH (autosummarize = on);

-- Bulk changes of the deliveries of an endpoint, in small transactions; mail of the endpoint. `position`: where it has
-- got to, on the way to `last_id`.
CREATE TABLE sweeps (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    endpoint_id text COLLATE "C" NOT NULL,
    action text NOT NULL CHECK (action IN ('hold', 'release', 'resend', 'cancel')),
    statuses text[] NOT NULL,
    kinds text[],
    since timestamptz,
    until timestamptz,
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
    finished_at timestamptz,
    leased_until timestamptz
);
CREATE INDEX sweeps_mail ON sweeps (endpoint_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX sweeps_page ON sweeps (workspace_id, id);
CREATE INDEX sweeps_finished ON sweeps (finished_at);
CREATE INDEX sweeps_action_page ON sweeps (workspace_id, action, id);
CREATE INDEX sweeps_endpoint_page ON sweeps (endpoint_id, id);

-- Chosen deliveries of a workspace, sent again; each replay is a mailbox. `filter`: as given, with the statuses that it
-- stands for. `count`: the deliveries chosen when it was made. `paced_until`: when the next may be sent, if there is a
-- limit. `wakes_at`: the same while it waits for that time.
CREATE TABLE replays (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('canary', 'running', 'paused', 'done', 'aborted')),
    filter json NOT NULL DEFAULT '{}',
    count integer NOT NULL,
    sent integer NOT NULL DEFAULT 0,
    skipped integer NOT NULL DEFAULT 0,
    per_second integer CHECK (per_second BETWEEN 1 AND 1000),
    created_by text COLLATE "C",
    trace_id text NOT NULL,
    paced_until timestamptz,
    wakes_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
CREATE INDEX replays_mail ON replays (id) WHERE due_at IS NOT NULL;
CREATE INDEX replays_waiting ON replays (wakes_at) WHERE wakes_at IS NOT NULL;
CREATE INDEX replays_page ON replays (workspace_id, id);
CREATE INDEX replays_age ON replays (created_at);

-- The deliveries that are still to be replayed, oldest first, some hundred in a part. `claims`: the `claim` of each
-- delivery when it was chosen.
CREATE TABLE replay_parts (
    replay_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    delivery_ids text[] NOT NULL,
    claims integer[] NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (replay_id, number)
);

-- The outcome of each delivery. `sent_as`: the delivery that went out.
CREATE TABLE replay_rows (
    replay_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    delivery_id text COLLATE "C" NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('sent', 'skipped')),
    reason text,
    sent_as text COLLATE "C",
    at timestamptz NOT NULL DEFAULT now(),
    workspace_id text COLLATE "C",
    PRIMARY KEY (replay_id, number)
);
CREATE INDEX replay_rows_outcome_page ON replay_rows (replay_id, outcome, number);

-- Who did what. `endpoint_id`: the target, if it is an endpoint, or the endpoint of the target. `reason` and `ticket`:
-- those of support staff.
CREATE TABLE audit_entries (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    action text NOT NULL,
    actor_type text NOT NULL CHECK (actor_type IN ('token', 'member', 'support', 'command')),
    actor_id text COLLATE "C",
    target_type text NOT NULL,
    target_id text COLLATE "C" NOT NULL,
    endpoint_id text COLLATE "C",
    detail json NOT NULL DEFAULT '{}',
    job_id text COLLATE "C",
    trace_id text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    reason text,
    ticket text
);
CREATE INDEX audit_entries_page ON audit_entries (workspace_id, id);
CREATE INDEX audit_entries_endpoint ON audit_entries (endpoint_id, id);
CREATE INDEX audit_entries_action_page ON audit_entries (workspace_id, action, id);
CREATE INDEX audit_entries_target ON audit_entries (target_id);

-- Channels.

-- `credentials`: encrypted JSON. `account`: the provider's identifier of the bot or phone number. `paced_until`: the
-- time by which the messages sent so far fit the rate (GCRA). `paused_until`: until when the provider asked for a
-- pause. `stopped_at`: since when the channel is not connected, until all messages that were being sent then have an
-- outcome.
CREATE TABLE channels (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    kind text NOT NULL,
    name text NOT NULL,
    state text NOT NULL DEFAULT 'connected' CHECK (state IN ('connected', 'reauthorization_required', 'disconnected')),
    created_at timestamptz NOT NULL DEFAULT now(),
    settings json NOT NULL DEFAULT '{}',
    problem json,
    credentials bytea,
    account text,
    paced_until timestamptz,
    paused_until timestamptz,
    deleted_at timestamptz,
    stopped_at timestamptz
);
CREATE INDEX channels_page ON channels (workspace_id, id);
-- Two channels cannot receive for one account at its provider.
CREATE INDEX channels_account ON channels (kind, account) WHERE account IS NOT NULL;
CREATE INDEX channels_deleted ON channels (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX channels_stopped ON channels (stopped_at) WHERE stopped_at IS NOT NULL;
CREATE INDEX channels_balanced ON channels (id) WHERE settings->>'assignment' = 'balanced' AND deleted_at IS NULL;

-- Requests to providers to connect a channel or to end the connection, one for each channel; mail of the workspace.
-- `revision` grows when the request changes, so that the outcome of an earlier one is not mistaken for an answer to
-- this one.
CREATE TABLE channel_requests (
    id text COLLATE "C" PRIMARY KEY REFERENCES channels,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    action text NOT NULL CHECK (action IN ('connect', 'disconnect')),
    revision integer NOT NULL DEFAULT 1,
    tries integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0
);
CREATE INDEX channel_requests_mail ON channel_requests (workspace_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX channel_requests_waiting ON channel_requests (next_attempt_at) WHERE next_attempt_at IS NOT NULL;

-- Who a contact is on a kind of channel. `address`: the kind, ':', and `external_id`.
CREATE TABLE identities (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    contact_id text COLLATE "C" NOT NULL,
    channel_kind text NOT NULL,
    external_id text NOT NULL,
    address text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX identities_address ON identities (workspace_id, address);
CREATE INDEX identities_contact ON identities (contact_id);

-- Browsers in which somebody has written in a web chat. `key_hash` and `token_hash`: SHA-256 of the key that the page
-- made up, and of the token that it got for that. `user_id`: the user that the visitor is, as signed by the workspace.
-- `peer`: the address of answers; visitors of one user share it. `expires_at`: when a visitor who may have uploaded
-- files but has written nothing is looked at; null once it has a contact.
CREATE TABLE visitors (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    channel_id text COLLATE "C" NOT NULL,
    key_hash bytea NOT NULL,
    token_hash bytea NOT NULL,
    user_id text,
    peer text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz DEFAULT now() + interval '1 day',
    UNIQUE (channel_id, key_hash)
);
CREATE UNIQUE INDEX visitors_token ON visitors (token_hash);
CREATE INDEX visitors_user ON visitors (channel_id, user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX visitors_expired ON visitors (expires_at) WHERE expires_at IS NOT NULL;

-- Everything that comes in over channels, until it is processed; then only the key stays. `sender_key`: the channel and
-- which of its contacts it is about. `key`: unique in the channel. `kind`: see app/channels/base.py. `payload`: null
-- once it is processed. `next_attempt_at`: when a receipt looks for its message again. `problem`: why it was given up.
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

-- Conversations and messages.

-- `held_at`: when a member wrote in it, which holds the contact's runs until it is closed. `waiting_run_id`: the run
-- that waits for a reply in it, or did so last. `peer`: the contact's address at the provider, such as a chat.
-- `unread`: how many inbound messages no member has read. `waiting_since`: since when the contact has waited for an
-- answer. `scheduled`: how many of its messages are scheduled. `broadcast_id`: the broadcast that last sent a message
-- here; null once the contact has written.
CREATE TABLE conversations (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    contact_id text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'closed')),
    assignee_id text COLLATE "C",
    held_at timestamptz,
    waiting_run_id text COLLATE "C",
    last_message_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    peer text,
    unread integer NOT NULL DEFAULT 0,
    window_ends_at timestamptz,
    paced_until timestamptz,
    labels text[] NOT NULL DEFAULT '{}',
    snoozed_until timestamptz,
    waiting_since timestamptz,
    first_answered_at timestamptz,
    scheduled integer NOT NULL DEFAULT 0,
    broadcast_id text COLLATE "C"
);
CREATE INDEX conversations_page ON conversations (workspace_id, id);
CREATE INDEX conversations_contact ON conversations (contact_id, (coalesce(last_message_at, created_at)), id);
CREATE INDEX conversations_channel ON conversations (channel_id, id);
CREATE INDEX conversations_assignee_page ON conversations (workspace_id, assignee_id, id);
CREATE INDEX conversations_status_page ON conversations (workspace_id, status, id);
-- An agent's conversations of one status, which may be few among many.
CREATE INDEX conversations_assignee_status_page ON conversations (workspace_id, assignee_id, status, id);
CREATE INDEX conversations_peer ON conversations (channel_id, peer) WHERE peer IS NOT NULL;
CREATE INDEX conversations_snoozed ON conversations (snoozed_until) WHERE snoozed_until IS NOT NULL;
CREATE INDEX conversations_snoozed_owner ON conversations (workspace_id, snoozed_until) WHERE snoozed_until IS NOT NULL;
CREATE INDEX conversations_snoozed_page ON conversations (workspace_id, id) WHERE snoozed_until IS NOT NULL;
CREATE INDEX conversations_waiting ON conversations (workspace_id, waiting_since, id) WHERE waiting_since IS NOT NULL;
-- Conversations without an assignee, the one that has waited longest first.
CREATE INDEX conversations_queue ON conversations (channel_id, waiting_since, id)
    WHERE status = 'open' AND assignee_id IS NULL AND snoozed_until IS NULL;
-- The latest message first.
CREATE INDEX conversations_latest ON conversations (workspace_id, coalesce(last_message_at, created_at), id)
    WHERE status = 'open' AND snoozed_until IS NULL;
CREATE INDEX conversations_assignee_latest
    ON conversations (workspace_id, assignee_id, coalesce(last_message_at, created_at), id)
    WHERE status = 'open' AND snoozed_until IS NULL;

-- What the search index has of a message: its words in lower case, and its contact, each behind a prefix for its time
-- and its workspace. The time is the identifier's, in steps of 37 hours (2^27 ms): three of its characters, and three
-- bits of the next one. So a search reads nothing of other workspaces, goes from the newest messages to the oldest and
-- stops when its page is full; and messages written together change few places of the index.
--
-- Scripts such as Chinese, Japanese and Thai do not separate words, and emoji stand anywhere: of these, every two
-- consecutive characters are a word. The characters that separate words are listed, because classes of characters
-- depend on the locale of the database. Words are cut after 40 characters. Must not call our own functions, because
-- indexes are built without a search path.
CREATE FUNCTION message_keys(id text, workspace_id text, contact_id text, said text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
DECLARE
    prefix text := substr(id, 6, 3)
        || translate(substr(id, 9, 1), '0123456789abcdefghjkmnpqrstvwxyz', '00001111222233334444555566667777')
        || right(workspace_id, 5);
    plain text := lower(left(coalesce(said, ''), 4096) COLLATE "default");
    word text;
    words text[] := '{}';
BEGIN
    IF octet_length(plain) = char_length(plain) THEN
        words := regexp_split_to_array(plain, '[^0-9a-z]+');
        IF plain ~ '[0-9a-z]{41}' THEN
            words := ARRAY(SELECT left(long, 40) FROM unnest(words) AS long);
        END IF;
    ELSE
        FOREACH word IN ARRAY regexp_split_to_array(
            regexp_replace(plain,
                '([\u0e00-\u109f\u1780-\u17ff\u2600-\u27bf\u3005-\u3007\u3021-\u3029\u3031-\u30ff\u31f0-\u31ff'
                '\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d\U0001f000-\U0001faff\U00020000-\U0003ffff]+)',
                E' \x01\\1 ', 'g'),
            '[\u0002-\u002f\u003a-\u0060\u007b-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7'
            '\u055a-\u055f\u0589\u05be\u05c0\u05c3\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965'
            '\u1361-\u1368\u2000-\u206f\u20a0-\u20bf\u2116\u2122\u2190-\u25ff\u2e00-\u2e7f\u3000-\u3004'
            '\u3008-\u3020\u302a-\u3030\ufe00-\ufe6f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65'
            '\ufff0-\uffff]+')
        LOOP
            IF left(word, 1) = E'\x01' THEN
                FOR place IN 2 .. char_length(word) LOOP
                    words := words || substr(word, place, 2);
                END LOOP;
            ELSE
                words := words || left(word, 40);
            END IF;
        END LOOP;
    END IF;
    RETURN array_to_tsvector(string_to_array(
        prefix || '@' || right(contact_id, 10)
            || E'\n' || prefix || array_to_string(array_remove(words, ''), E'\n' || prefix), E'\n'));
END
$$;

-- Outbound messages are mail of the channel. Only the first unfinished message of a conversation is mail; the others
-- wait with `is_behind`. `run_id`: the run that sent the message, or that took it as a reply. `attachments`: files, as
-- in the API but without their addresses. `provider_id`: unique in the channel. `is_automated`: not written by a
-- person; people's messages go first. `sent_at`: when the message was first known to be sent, which is what billing
-- counts; null for what the business sent in the provider's own app. `put_off_at`: when the provider first asked to
-- send it later. `expires_at`: from then on it is not sent; null if it always is. `buttons`: each an `id` and a
-- `label`; `button_id`: the one that was pressed. `send_at`: when a scheduled message is queued; null for all others.
-- `created_at` of a scheduled message becomes the time at which it was queued.
CREATE TABLE messages (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    direction text NOT NULL CHECK (direction IN ('in', 'out')),
    text text,
    template json,
    status text NOT NULL,
    failure json,
    author json NOT NULL,
    run_id text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT now(),
    channel_id text COLLATE "C",
    attachments json NOT NULL DEFAULT '[]',
    provider_id text,
    provider_time timestamptz,
    edited_at timestamptz,
    is_automated boolean NOT NULL DEFAULT false,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    is_behind boolean NOT NULL DEFAULT false,
    sent_at timestamptz,
    put_off_at timestamptz,
    expires_at timestamptz,
    buttons json,
    button_id text,
    send_at timestamptz,
    cancel_on_reply boolean NOT NULL DEFAULT false,
    broadcast_id text COLLATE "C"
) WITH (fillfactor = 80);
-- Not validated, as in databases that the 68 files made: they did not read the whole table under its lock.
ALTER TABLE messages ADD CONSTRAINT messages_status_check
    CHECK (status IN ('received', 'scheduled', 'queued', 'sending', 'sent', 'delivered', 'read', 'failed', 'unknown'))
    NOT VALID;
CREATE INDEX messages_page ON messages (workspace_id, id);
CREATE INDEX messages_conversation ON messages (conversation_id, id);
CREATE INDEX messages_contact ON messages (contact_id, id);
CREATE UNIQUE INDEX messages_provider ON messages (channel_id, provider_id) WHERE provider_id IS NOT NULL;
CREATE INDEX messages_in_order ON messages (conversation_id, (coalesce(provider_time, created_at)), id);
CREATE INDEX messages_mail ON messages (channel_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX messages_of_people ON messages (channel_id, due_at) WHERE due_at IS NOT NULL AND NOT is_automated;
CREATE UNIQUE INDEX messages_first ON messages (conversation_id) WHERE due_at IS NOT NULL;
CREATE INDEX messages_sent ON messages (sent_at, workspace_id) WHERE sent_at IS NOT NULL;
-- The latest message that a contact wrote, and the latest that it was sent.
CREATE INDEX messages_received ON messages (contact_id, coalesce(provider_time, created_at)) WHERE direction = 'in';
CREATE INDEX messages_sent_to ON messages (contact_id, sent_at) WHERE sent_at IS NOT NULL;
-- Not by status, because each claim changes that.
CREATE INDEX messages_scheduled ON messages (send_at) WHERE send_at IS NOT NULL;
CREATE INDEX messages_scheduled_owner ON messages (workspace_id, send_at, id) WHERE send_at IS NOT NULL;
CREATE INDEX messages_scheduled_conversation ON messages (conversation_id, send_at, id) WHERE send_at IS NOT NULL;
-- By `created_at`: a message that was scheduled has an old identifier, but goes behind those queued before it.
CREATE INDEX messages_behind_in_order ON messages (conversation_id, created_at, id) WHERE is_behind;
-- A search would scan a pending list once for every prefix of time.
CREATE INDEX messages_words ON messages USING gin (message_keys(id, workspace_id, contact_id, text))
    WITH (fastupdate = off) WHERE text IS NOT NULL;
-- Messages that Bellhop did not send, in the order in which they were stored. `messages_sent` has the others.
CREATE INDEX messages_noted ON messages (created_at) WHERE direction = 'in' OR author->>'type' = 'provider';
CREATE INDEX messages_of_automations ON messages (channel_id, due_at)
    WHERE due_at IS NOT NULL AND is_automated AND broadcast_id IS NULL;
CREATE INDEX messages_of_broadcasts ON messages (channel_id, due_at)
    WHERE due_at IS NOT NULL AND broadcast_id IS NOT NULL;
-- The messages of a broadcast that are not finished.
CREATE INDEX messages_under_way ON messages (broadcast_id)
    WHERE broadcast_id IS NOT NULL AND (due_at IS NOT NULL OR is_behind);

CREATE FUNCTION note_that_message_is_sent() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.sent_at := now();
    RETURN NEW;
END $$;

CREATE TRIGGER messages_inserted_as_sent BEFORE INSERT ON messages FOR EACH ROW
    WHEN (NEW.direction = 'out' AND NEW.status IN ('sent', 'delivered', 'read') AND NEW.author->>'type' <> 'provider')
    EXECUTE FUNCTION note_that_message_is_sent();
CREATE TRIGGER messages_become_sent BEFORE UPDATE OF status ON messages FOR EACH ROW
    WHEN (OLD.sent_at IS NULL AND NEW.direction = 'out' AND NEW.status IN ('sent', 'delivered', 'read')
        AND NEW.author->>'type' <> 'provider')
    EXECUTE FUNCTION note_that_message_is_sent();

-- Files: uploaded through the API or by visitors of a web chat; or to be fetched from a provider, and mail of the
-- channel until they are here; or fetched from other servers by runs, which wait for them. `file`: the path under
-- MEDIA_DIR; null if the file is not here. `source`: what to ask the provider for. `expires_at`: when it is deleted,
-- unless a message has it by then. `saved_reply_id`: the saved reply or broadcast that keeps the file. `was_sent`:
-- messages use the kept file, too, so it stays.
CREATE TABLE uploads (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    channel_id text COLLATE "C",
    message_id text COLLATE "C",
    visitor_id text COLLATE "C",
    name text,
    content_type text,
    bytes bigint,
    file text,
    source json,
    problem text,
    tries integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    run_id text,
    saved_reply_id text,
    was_sent boolean NOT NULL DEFAULT false
);
CREATE INDEX uploads_mail ON uploads (channel_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX uploads_waiting ON uploads (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX uploads_message ON uploads (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX uploads_expired ON uploads (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX uploads_visitor ON uploads (visitor_id) WHERE visitor_id IS NOT NULL AND message_id IS NULL;
CREATE INDEX uploads_run ON uploads (run_id) WHERE run_id IS NOT NULL;

-- Receipts to be sent to providers, which tell contacts that their latest message was read; mail of the channel.
CREATE TABLE read_receipts (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    channel_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    provider_id text NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX read_receipts_mail ON read_receipts (channel_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX read_receipts_waiting ON read_receipts (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX read_receipts_conversation ON read_receipts (conversation_id);

-- The inbox.

-- The labels of conversations, for lists by label. `status`: the conversation's.
CREATE TABLE conversation_labels (
    workspace_id text COLLATE "C" NOT NULL,
    label text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    status text NOT NULL,
    PRIMARY KEY (workspace_id, label, conversation_id)
);
CREATE INDEX conversation_labels_status_page ON conversation_labels (workspace_id, label, status, conversation_id);
CREATE INDEX conversation_labels_conversation ON conversation_labels (conversation_id);

CREATE FUNCTION list_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM conversation_labels WHERE conversation_id = NEW.id AND label <> ALL (NEW.labels);
    INSERT INTO conversation_labels (workspace_id, label, conversation_id, status)
    SELECT NEW.workspace_id, label, NEW.id, NEW.status FROM unnest(NEW.labels) AS label
    ON CONFLICT (workspace_id, label, conversation_id) DO UPDATE SET status = excluded.status;
    RETURN NULL;
END $$;

-- The conditions are false for nearly all conversations that are written.
CREATE TRIGGER list_labels_of_new AFTER INSERT ON conversations FOR EACH ROW
    WHEN (NEW.labels <> '{}') EXECUTE FUNCTION list_labels();
CREATE TRIGGER list_labels_of_changed AFTER UPDATE ON conversations FOR EACH ROW
    WHEN ((NEW.labels <> '{}' OR OLD.labels <> '{}') AND (NEW.labels, NEW.status) <> (OLD.labels, OLD.status))
    EXECUTE FUNCTION list_labels();

-- Notes of conversations, which only members see.
CREATE TABLE notes (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    author json NOT NULL,
    text text NOT NULL,
    mentions text[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notes_conversation ON notes (conversation_id, id);
CREATE INDEX notes_contact ON notes (contact_id, id);

-- What members have begun to write, one for each conversation. `key`: the form in which it was typed. `sent_keys`: the
-- forms that were sent last, so that a draft that arrives after its form was sent is not kept.
CREATE TABLE drafts (
    member_id text COLLATE "C" NOT NULL REFERENCES members ON DELETE CASCADE,
    conversation_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    kind text NOT NULL CHECK (kind IN ('reply', 'note')),
    text text NOT NULL,
    key text NOT NULL,
    sent_keys text[] NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (member_id, conversation_id)
);
CREATE INDEX drafts_conversation ON drafts (conversation_id);
CREATE INDEX drafts_latest ON drafts (member_id, updated_at);

-- `folded`: the shortcut in the form in which it is compared.
CREATE TABLE saved_replies (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    shortcut text NOT NULL,
    folded text COLLATE "C" NOT NULL,
    text text NOT NULL,
    attachments json NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX saved_replies_page ON saved_replies (workspace_id, id);
CREATE UNIQUE INDEX saved_replies_shortcut ON saved_replies (workspace_id, folded);

CREATE TABLE macros (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    actions json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX macros_page ON macros (workspace_id, id);

-- `member_id`: the owner; null if it is the workspace's.
CREATE TABLE saved_views (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    member_id text COLLATE "C" REFERENCES members ON DELETE CASCADE,
    name text NOT NULL,
    filters json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX saved_views_owner ON saved_views (workspace_id, member_id, id);
CREATE INDEX saved_views_member ON saved_views (member_id) WHERE member_id IS NOT NULL;

-- Conversations that were chosen together, and the change that is made to each. `total`: null until all are written
-- down in selection_parts, whose rows are deleted as they are worked off.
CREATE TABLE selections (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    job_id text COLLATE "C" NOT NULL,
    choice json NOT NULL,
    action json NOT NULL,
    total integer,
    changed integer NOT NULL DEFAULT 0,
    unchanged integer NOT NULL DEFAULT 0,
    refused integer NOT NULL DEFAULT 0,
    passed_over integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
CREATE INDEX selections_job ON selections (job_id);
CREATE INDEX selections_page ON selections (workspace_id, id);
CREATE INDEX selections_old ON selections (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE selection_parts (
    selection_id text COLLATE "C" NOT NULL REFERENCES selections ON DELETE CASCADE,
    number integer NOT NULL,
    conversation_ids text[] NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (selection_id, number)
);

-- For all members, or for `member_id`. `once`: the subject, of which there is one notification. `is_announced`: e-mail
-- to the owners has been arranged. `amount`: how often it has happened since it was read; each time, the row gets a new
-- identifier, so that it is the newest again.
CREATE TABLE notifications (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    kind text NOT NULL
        CHECK (kind IN ('endpoint_stopped', 'import_ended', 'usage_high', 'channel_refused', 'mentioned', 'assigned',
            'contact_wrote', 'new_conversation', 'woken')),
    once text NOT NULL,
    detail json NOT NULL,
    is_announced boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    member_id text COLLATE "C",
    conversation_id text COLLATE "C",
    amount integer NOT NULL DEFAULT 1
);
CREATE UNIQUE INDEX notifications_once ON notifications (workspace_id, kind, once);
CREATE INDEX notifications_new ON notifications (id) WHERE NOT is_announced;
CREATE INDEX notifications_of_member ON notifications (member_id, id) WHERE member_id IS NOT NULL;
CREATE INDEX notifications_conversation ON notifications (conversation_id) WHERE conversation_id IS NOT NULL;
-- Members who do not want to know of new conversations read none of these, however many there are.
CREATE INDEX notifications_page ON notifications (workspace_id, id)
    WHERE member_id IS NULL AND kind <> 'new_conversation';
CREATE INDEX notifications_new_conversations ON notifications (workspace_id, id) WHERE kind = 'new_conversation';

-- Deletes notifications that nobody has to look at any more: all but mentions if the conversation is closed; the former
-- assignee's if it has another; that it is new if it is assigned, read or answered.
CREATE FUNCTION end_notifications() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM notifications WHERE conversation_id = NEW.id AND kind <> 'mentioned' AND (
        NEW.status = 'closed'
        OR kind <> 'new_conversation' AND member_id IS DISTINCT FROM NEW.assignee_id
        OR kind = 'new_conversation' AND (NEW.assignee_id IS NOT NULL OR NEW.unread = 0 OR NEW.waiting_since IS NULL));
    RETURN NULL;
END $$;

CREATE TRIGGER end_notifications AFTER UPDATE ON conversations FOR EACH ROW
    WHEN ((OLD.status, OLD.assignee_id, OLD.unread = 0, OLD.waiting_since IS NULL)
        IS DISTINCT FROM (NEW.status, NEW.assignee_id, NEW.unread = 0, NEW.waiting_since IS NULL)
        AND (NEW.status = 'closed' OR OLD.assignee_id IS DISTINCT FROM NEW.assignee_id OR NEW.assignee_id IS NULL))
    EXECUTE FUNCTION end_notifications();

-- E-mail to be sent. Its text is written when it is sent, because its links must not be stored. `subject_id`: the link
-- of an invitation, or the account that gets notifications. `address`: where somebody asked for a link to reset a
-- password.
CREATE TABLE emails (
    id text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('invitation', 'reset', 'notifications')),
    subject_id text COLLATE "C",
    address text,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX emails_due ON emails (due_at);
-- However often somebody asks, one e-mail waits for each address.
CREATE UNIQUE INDEX emails_address ON emails (lower(address)) WHERE address IS NOT NULL;

-- Counts and reports of the inbox.

-- How many conversations of a workspace are open, unassigned, snoozed or waiting, or have an assignee or a label. Each
-- transaction adds its changes to conversation_deltas; the scheduler adds them up in conversation_counts.
CREATE TABLE conversation_deltas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount int NOT NULL
);
-- So that the conversations of one member are added up without reading those of others.
CREATE INDEX conversation_deltas_key ON conversation_deltas (workspace_id, key);

CREATE TABLE conversation_counts (
    workspace_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (workspace_id, key)
);

-- What a conversation counts as.
CREATE FUNCTION counted_as(talk conversations) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
    SELECT key FROM unnest(
        ARRAY['open', coalesce('assignee:' || talk.assignee_id, 'unassigned'),
            CASE WHEN talk.snoozed_until IS NOT NULL THEN 'snoozed' END,
            CASE WHEN talk.snoozed_until IS NOT NULL THEN coalesce('asleep:' || talk.assignee_id, 'asleep') END,
            CASE WHEN talk.waiting_since IS NOT NULL THEN 'waiting' END]
        || ARRAY(SELECT 'label:' || label FROM unnest(talk.labels) AS label)) AS key
    WHERE talk.status = 'open' AND key IS NOT NULL
$$;

CREATE FUNCTION count_conversation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO conversation_deltas (workspace_id, key, amount)
    SELECT NEW.workspace_id, key, sum(amount) FROM (
        SELECT key, 1 AS amount FROM counted_as(NEW) AS key
        UNION ALL
        SELECT key, -1 FROM counted_as(OLD) AS key) AS counted
    GROUP BY key HAVING sum(amount) <> 0;
    RETURN NULL;
END $$;

CREATE TRIGGER count_new AFTER INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION count_conversation();
-- False for most changes: a message that is not the first to wait for an answer, the conversation's pace.
CREATE TRIGGER count_changed AFTER UPDATE ON conversations FOR EACH ROW
    WHEN ((OLD.status, OLD.assignee_id, OLD.snoozed_until IS NULL, OLD.waiting_since IS NULL, OLD.labels)
        IS DISTINCT FROM
            (NEW.status, NEW.assignee_id, NEW.snoozed_until IS NULL, NEW.waiting_since IS NULL, NEW.labels))
    EXECUTE FUNCTION count_conversation();

-- When conversations began, were closed and were opened again, until that is counted. `labels` and `assignee_id`: as
-- they were then.
CREATE TABLE conversation_transitions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C" NOT NULL,
    channel_id text COLLATE "C" NOT NULL,
    assignee_id text COLLATE "C",
    labels text[] NOT NULL,
    kind text NOT NULL,
    at timestamptz NOT NULL
);
CREATE INDEX conversation_transitions_at ON conversation_transitions (at);

-- Within its transaction, a conversation opens before all else and closes after it. If it is closed because its contact
-- is erased, that counts for nothing.
CREATE FUNCTION note_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO conversation_transitions (workspace_id, conversation_id, channel_id, assignee_id, labels, kind, at)
    VALUES (NEW.workspace_id, NEW.id, NEW.channel_id, NEW.assignee_id, NEW.labels,
        CASE WHEN TG_OP = 'INSERT' THEN 'began'
            WHEN NEW.status = 'open' THEN 'reopened'
            WHEN EXISTS (SELECT FROM contacts WHERE id = NEW.contact_id) THEN 'closed'
            ELSE 'erased' END,
        CASE WHEN NEW.status = 'open' THEN now() ELSE clock_timestamp() END);
    RETURN NULL;
END $$;

CREATE TRIGGER note_beginning AFTER INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION note_transition();
CREATE TRIGGER note_opening_or_closing AFTER UPDATE ON conversations FOR EACH ROW
    WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION note_transition();

-- The current opening of each conversation, from its beginning or reopening until it is closed.
CREATE TABLE conversation_openings (
    conversation_id text COLLATE "C" PRIMARY KEY,
    opened_at timestamptz NOT NULL,
    first_received_at timestamptz,
    is_answered boolean NOT NULL,
    closed_at timestamptz,
    workspace_id text COLLATE "C"
);
CREATE INDEX conversation_openings_closed ON conversation_openings (closed_at) WHERE closed_at IS NOT NULL;

-- `dimension`: '' for the whole workspace. `bucket`: of a duration; 0 for counts.
CREATE TABLE inbox_figures (
    workspace_id text COLLATE "C" NOT NULL,
    dimension text COLLATE "C" NOT NULL,
    grain text COLLATE "C" NOT NULL,
    measure text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    value text COLLATE "C" NOT NULL,
    bucket smallint NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (workspace_id, dimension, grain, measure, starts_at, value, bucket)
);
CREATE INDEX inbox_figures_age ON inbox_figures (starts_at);

-- The values of a dimension that have figures of their own in a month (UTC). All others are added up under ''.
CREATE TABLE inbox_figure_values (
    workspace_id text COLLATE "C" NOT NULL,
    dimension text COLLATE "C" NOT NULL,
    month timestamptz NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, dimension, month, value)
);
CREATE INDEX inbox_figure_values_age ON inbox_figure_values (month);

CREATE TABLE inbox_figure_progress (
    is_only boolean PRIMARY KEY CHECK (is_only),
    begun_at timestamptz NOT NULL,
    counted_until timestamptz NOT NULL
);

-- Automations.

-- `version`: the published one. `definition`: the draft. `reentry`: null if it depends on what starts the run.
-- `cancellations`: a mark for each call under way that cancels runs.
CREATE TABLE automations (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    status text NOT NULL DEFAULT 'draft' CHECK (status IN ('draft', 'published', 'unpublished', 'paused')),
    version integer,
    latest_version integer NOT NULL DEFAULT 0,
    definition json NOT NULL,
    reentry text CHECK (reentry IN ('every', 'after_finish', 'once')),
    exits json NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    cancellations json NOT NULL DEFAULT '[]',
    goal json
);
CREATE INDEX automations_page ON automations (workspace_id, id);

-- `published_by`: the token, member or visit that published the version; null if it is not known.
CREATE TABLE automation_versions (
    automation_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    definition json NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now(),
    published_by text COLLATE "C",
    PRIMARY KEY (automation_id, number)
);

-- The automations whose runs an event may start or end. `key`: the kind of the event; if the trigger has a tag,
-- followed by ':' and the tag; if runs wait for the event, behind 'awaited '. `since`: earlier events do not count,
-- even if they are processed later.
CREATE TABLE automation_listeners (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    key text NOT NULL,
    automation_id text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, key, automation_id)
);
CREATE INDEX automation_listeners_automation ON automation_listeners (automation_id);

-- The drafts that editors of automations share, which may be incomplete. `state`: the number of the present state.
-- `revision` counts all changes, undo and redo too. `seen`: the fingerprint of the automation's definition when it was
-- last written or read here; if it differs, the automation was changed elsewhere.
CREATE TABLE working_copies (
    automation_id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    state integer NOT NULL,
    revision integer NOT NULL,
    seen text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- The last states of a working copy, for undo and redo. `done`: the change in words. `steps`: the identifiers of the
-- steps that it changed. `actor_id`: null if it was not an editor.
CREATE TABLE working_copy_states (
    automation_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    definition json NOT NULL,
    bytes integer NOT NULL,
    actor_id text COLLATE "C",
    done text NOT NULL,
    steps text[] NOT NULL DEFAULT '{}',
    made_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (automation_id, number)
);

-- The step that a member, or staff on a visit, has copied last. `source_id`: where it comes from. `is_cut`: it is
-- removed there when it is pasted.
CREATE TABLE step_clipboards (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    actor_id text COLLATE "C" NOT NULL,
    step json NOT NULL,
    source_id text COLLATE "C" NOT NULL,
    is_cut boolean NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, actor_id)
);
-- The scheduler deletes old ones.
CREATE INDEX step_clipboards_age ON step_clipboards (updated_at);

-- Mail of the workspace. `step`: the step to take next, or the one that waits. `variables`: given at the start;
-- `own_variables`: set by steps, and stronger. `saved`: results of steps, by name. `wait`: the number of the present or
-- last wait. `answer`: the outcome of a wait. `prompted`: the contact's messages after this one are replies.
-- `is_awaited`: the run that started this one waits for its end. `result`: what its `stop` returns; null for nothing.
-- `goal_until`: until when an event may reach the goal; null if there is none, or it has been reached. `is_counted`: it
-- is in run_counts. The fillfactor leaves room for a claim, so that it changes no index.
CREATE TABLE runs (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    automation_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    conversation_id text COLLATE "C",
    status text NOT NULL DEFAULT 'queued'
        CHECK (status IN ('queued', 'running', 'waiting', 'held', 'completed', 'failed', 'cancelled')),
    reason text,
    failure json,
    variables json NOT NULL DEFAULT '{}',
    event json,
    saved json NOT NULL DEFAULT '{}',
    step text,
    taken integer NOT NULL DEFAULT 0,
    unbroken integer NOT NULL DEFAULT 0,
    logged integer NOT NULL DEFAULT 0,
    wait integer NOT NULL DEFAULT 0,
    waits_for text,
    answer json,
    prompted text COLLATE "C",
    is_released boolean NOT NULL DEFAULT false,
    depth integer NOT NULL DEFAULT 0,
    job_id text COLLATE "C",
    event_id text COLLATE "C",
    parent_id text COLLATE "C",
    trace_id text NOT NULL,
    resume_at timestamptz,
    due_at timestamptz DEFAULT now(),
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    deaths integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    own_variables json NOT NULL DEFAULT '{}',
    is_awaited boolean NOT NULL DEFAULT false,
    result json,
    goal_until timestamptz,
    goal_reached_at timestamptz,
    is_counted boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
-- Not validated, like that of messages.
ALTER TABLE runs ADD CONSTRAINT runs_waits_for_check
    CHECK (waits_for IN ('time', 'reply', 'response', 'run', 'event', 'quiet_hours', 'member', 'pause', 'file'))
    NOT VALID;
CREATE INDEX runs_mail ON runs (workspace_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_resume ON runs (resume_at) WHERE resume_at IS NOT NULL;
CREATE INDEX runs_page ON runs (workspace_id, id);
CREATE INDEX runs_status_page ON runs (workspace_id, status, id);
CREATE INDEX runs_automation_page ON runs (automation_id, status, id);
CREATE INDEX runs_contact_page ON runs (contact_id, id);
CREATE INDEX runs_unfinished ON runs (contact_id, automation_id) WHERE finished_at IS NULL;
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_failure_page ON runs (workspace_id, (failure->>'code'), id) WHERE failure IS NOT NULL;
-- Runs that a pause holds. The scheduler looks here for those whose automation is no longer paused.
CREATE INDEX runs_held ON runs (automation_id, id) WHERE reason = 'pause' AND due_at IS NULL;
-- Runs that quiet hours hold, whose wait is decided again when the workspace changes these hours.
CREATE INDEX runs_quiet ON runs (workspace_id) WHERE waits_for = 'quiet_hours' AND resume_at IS NOT NULL;
CREATE INDEX runs_goal ON runs (contact_id, automation_id, id) WHERE goal_until IS NOT NULL;
CREATE INDEX runs_awaiting ON runs (contact_id, automation_id, id) WHERE waits_for = 'event';
-- Runs that wait in a step of a version, and runs that failed in it, as the picture of an automation counts them.
CREATE INDEX runs_waiting_step ON runs (automation_id, version, step, id) WHERE waits_for IS NOT NULL;
CREATE INDEX runs_failed_step ON runs (automation_id, version, step, id) WHERE status = 'failed';

-- The log of runs. `step`: its identifier in the definition.
CREATE TABLE run_steps (
    id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    step text NOT NULL,
    kind text NOT NULL,
    status text NOT NULL CHECK (status IN ('succeeded', 'failed', 'waiting')),
    at timestamptz NOT NULL,
    detail json NOT NULL,
    PRIMARY KEY (run_id, number, id)
) PARTITION BY RANGE (id);
CREATE TABLE run_steps_default PARTITION OF run_steps DEFAULT;

-- Requests of `http_request` steps; mail of the workspace, deleted once the run has the outcome.
CREATE TABLE run_requests (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    wait integer NOT NULL,
    key uuid NOT NULL,
    request json NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    due_at timestamptz DEFAULT now(),
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0
);
CREATE INDEX run_requests_mail ON run_requests (workspace_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX run_requests_waiting ON run_requests (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX run_requests_run ON run_requests (run_id);

-- A contact has entered an automation. `id`: both identifiers, with '/' between them. `active`: the number of
-- unfinished runs. Changed only by a transaction that has locked the contact.
CREATE TABLE enrolments (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    automation_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    active integer NOT NULL
);
CREATE INDEX enrolments_automation ON enrolments (automation_id);

-- Counts by automation: runs by status, and refused starts. Each transaction adds its changes to automation_deltas; the
-- scheduler adds them up in automation_counts and run_counts. `version`, and `hour`, in which the run was created: null
-- for what is counted by automation only. `step`: '' for what is counted of whole runs.
CREATE TABLE automation_deltas (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL,
    automation_id text COLLATE "C" NOT NULL,
    key text NOT NULL,
    amount integer NOT NULL,
    version integer,
    hour timestamptz,
    step text NOT NULL DEFAULT ''
);
CREATE INDEX automation_deltas_automation ON automation_deltas (automation_id);

CREATE TABLE automation_counts (
    automation_id text COLLATE "C" NOT NULL,
    key text NOT NULL,
    amount bigint NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (automation_id, key)
);

-- Counts by version. `grain`: the length of the time in which the runs were created. `starts_at`: its beginning; the
-- epoch for 'all'. `key`: a status of runs, or `goals`; of a step `entered`, `left`, `waiting`, `failed`, or `arm:` and
-- the arm's name.
CREATE TABLE run_counts (
    automation_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    grain text COLLATE "C" NOT NULL CHECK (grain IN ('all', 'day', 'hour')),
    starts_at timestamptz NOT NULL,
    step text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (automation_id, version, grain, starts_at, step, key)
) WITH (fillfactor = 70);
CREATE INDEX run_counts_age ON run_counts (grain, starts_at);

-- Triggers by time of published versions. `key`: the trigger without its condition. `scanned_to`: how far the scan of
-- existing bookings or contacts has got; null once it is over. `begins_at`: the scan waits until all transactions
-- before this one have ended, as they may not have seen the trigger. `is_ended`: the published version no longer has
-- the trigger, and the scan removes what waits.
CREATE TABLE timed_triggers (
    automation_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    since timestamptz NOT NULL DEFAULT now(),
    scanned_to text COLLATE "C" DEFAULT '',
    begins_at xid8,
    is_ended boolean NOT NULL DEFAULT false,
    PRIMARY KEY (automation_id, key)
);
CREATE INDEX timed_triggers_workspace ON timed_triggers (workspace_id) WHERE NOT is_ended;
CREATE INDEX timed_triggers_scans ON timed_triggers (workspace_id) WHERE scanned_to IS NOT NULL;

-- One for each automation, trigger and its subject: a booking until it begins, or a contact. `at`: when the run starts,
-- or, after that, when the row of a booking is removed. `fired_for`: the latest day for which a run was started.
CREATE TABLE waiting_starts (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    automation_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    booking_id text COLLATE "C" REFERENCES bookings ON DELETE CASCADE,
    contact_id text COLLATE "C" REFERENCES contacts ON DELETE CASCADE,
    at timestamptz,
    fired_for date,
    CHECK (num_nonnulls(booking_id, contact_id) = 1)
);
CREATE INDEX waiting_starts_at ON waiting_starts (at) WHERE at IS NOT NULL;
CREATE INDEX waiting_starts_due ON waiting_starts (workspace_id, at) WHERE at IS NOT NULL;
CREATE INDEX waiting_starts_trigger ON waiting_starts (automation_id, key);
CREATE INDEX waiting_starts_booking ON waiting_starts (booking_id) WHERE booking_id IS NOT NULL;
CREATE INDEX waiting_starts_contact ON waiting_starts (contact_id) WHERE contact_id IS NOT NULL;

-- Triggers of published versions that start runs for a segment. `key`: the trigger without its condition. `next_at`:
-- when it starts runs next, or began to. `began_at`: since when it has been starting runs; null if it is not.
-- `reached`: the last contact that it has looked at. `is_filled`: for triggers that wait for contacts to enter; whether
-- segment_contacts has those that were there at the publication.
CREATE TABLE schedules (
    automation_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    segment_id text COLLATE "C" NOT NULL,
    next_at timestamptz NOT NULL,
    began_at timestamptz,
    reached text COLLATE "C" NOT NULL DEFAULT '',
    is_filled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (automation_id, key)
);
CREATE INDEX schedules_segment ON schedules (segment_id);
CREATE INDEX schedules_workspace ON schedules (workspace_id);
CREATE INDEX schedules_next ON schedules (next_at);

-- The contacts that were in the segment when a schedule of an automation last looked.
CREATE TABLE segment_contacts (
    automation_id text COLLATE "C" NOT NULL,
    segment_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (automation_id, segment_id, contact_id)
);

-- Broadcasts.

-- One message, or the start of an automation, for each contact of a segment; each broadcast is a mailbox. `filter`: the
-- contacts; until it starts, the segment's filter counts, if it has a segment. `reached`: the last contact that was
-- looked at while the contacts are written down; null once all are. `count`: how many that is so far. `handled`: how
-- many of them have a row. `wakes_at`: when it starts, or goes on. `problem`: why it paused by itself.
CREATE TABLE broadcasts (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    state text NOT NULL CHECK (state IN ('scheduled', 'canary', 'running', 'paused', 'done', 'aborted')),
    segment_id text COLLATE "C",
    filter json,
    channel_id text COLLATE "C",
    message json,
    automation_id text COLLATE "C",
    send_at timestamptz,
    time_zone text NOT NULL CHECK (time_zone IN ('workspace', 'contact')),
    per_second integer CHECK (per_second BETWEEN 1 AND 1000),
    canary boolean NOT NULL,
    created_by text COLLATE "C",
    trace_id text NOT NULL,
    reached text COLLATE "C" DEFAULT '',
    count integer NOT NULL DEFAULT 0,
    handled integer NOT NULL DEFAULT 0,
    problem text,
    paced_until timestamptz,
    wakes_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    CHECK ((message IS NULL) <> (automation_id IS NULL)),
    CHECK (segment_id IS NOT NULL OR filter IS NOT NULL)
);
CREATE INDEX broadcasts_mail ON broadcasts (id) WHERE due_at IS NOT NULL;
CREATE INDEX broadcasts_waiting ON broadcasts (wakes_at) WHERE wakes_at IS NOT NULL;
CREATE INDEX broadcasts_page ON broadcasts (workspace_id, id);
CREATE INDEX broadcasts_state_page ON broadcasts (workspace_id, state, id);
CREATE INDEX broadcasts_age ON broadcasts (created_at);

-- The contacts still to be handled, some hundred in a part, of which the first `place` are done. Contacts in quiet
-- hours are moved to a part that is due when these end.
CREATE TABLE broadcast_parts (
    broadcast_id text COLLATE "C" NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    due_at timestamptz NOT NULL,
    place integer NOT NULL DEFAULT 0,
    contact_ids text[] NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (broadcast_id, due_at, number)
);

-- The outcome for each contact.
CREATE TABLE broadcast_rows (
    broadcast_id text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('sent', 'started', 'skipped')),
    reason text,
    message_id text COLLATE "C",
    run_id text COLLATE "C",
    replied_at timestamptz,
    at timestamptz NOT NULL DEFAULT now(),
    workspace_id text COLLATE "C",
    PRIMARY KEY (broadcast_id, number)
);
CREATE UNIQUE INDEX broadcast_rows_contact ON broadcast_rows (broadcast_id, contact_id);
CREATE INDEX broadcast_rows_outcome_page ON broadcast_rows (broadcast_id, outcome, number);
CREATE INDEX broadcast_rows_replied ON broadcast_rows (broadcast_id, number) WHERE replied_at IS NOT NULL;

-- Each transaction adds its changes to broadcast_deltas; the scheduler adds them up in broadcast_counts.
CREATE TABLE broadcast_deltas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    broadcast_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount integer NOT NULL,
    workspace_id text COLLATE "C"
);
CREATE INDEX broadcast_deltas_broadcast ON broadcast_deltas (broadcast_id);

CREATE TABLE broadcast_counts (
    broadcast_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (broadcast_id, key)
);

-- What a message counts as: `waiting` if it is not sent yet; and if it failed, for its reason, too.
CREATE FUNCTION broadcast_keys(message messages) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN message.status IN ('queued', 'sending') THEN 'waiting' ELSE message.status END
    UNION ALL
    SELECT 'failed:' || (message.failure->>'code') WHERE message.status = 'failed' AND message.failure IS NOT NULL
$$;

CREATE FUNCTION count_message_of_broadcast() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO broadcast_deltas (workspace_id, broadcast_id, key, amount)
    SELECT NEW.workspace_id, NEW.broadcast_id, key, sum(amount) FROM (
        SELECT key, 1 AS amount FROM broadcast_keys(NEW) AS key
        UNION ALL
        SELECT key, -1 FROM broadcast_keys(OLD) AS key WHERE TG_OP = 'UPDATE') AS counted
    GROUP BY key HAVING sum(amount) <> 0;
    RETURN NULL;
END $$;

CREATE TRIGGER count_new_of_broadcast AFTER INSERT ON messages FOR EACH ROW
    WHEN (NEW.broadcast_id IS NOT NULL) EXECUTE FUNCTION count_message_of_broadcast();
CREATE TRIGGER count_changed_of_broadcast AFTER UPDATE OF status ON messages FOR EACH ROW
    WHEN (NEW.broadcast_id IS NOT NULL AND NEW.status <> OLD.status AND NEW.status <> 'sending')
    EXECUTE FUNCTION count_message_of_broadcast();

-- A contact who writes within a week of a broadcast's message has replied to it.
CREATE FUNCTION count_reply_to_broadcast() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE broadcast_rows SET replied_at = now()
    WHERE broadcast_id = OLD.broadcast_id AND contact_id = OLD.contact_id AND outcome = 'sent'
        AND replied_at IS NULL AND at > now() - interval '7 days';
    IF FOUND THEN
        INSERT INTO broadcast_deltas (workspace_id, broadcast_id, key, amount)
        VALUES (OLD.workspace_id, OLD.broadcast_id, 'replied', 1);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER count_reply AFTER UPDATE OF broadcast_id ON conversations FOR EACH ROW
    WHEN (OLD.broadcast_id IS NOT NULL AND NEW.broadcast_id IS NULL) EXECUTE FUNCTION count_reply_to_broadcast();

-- Live updates.

-- The resources that have changed, noted by triggers in the transaction of the change. `transaction_id` makes a place
-- in a stream exact; `id` is the order within a transaction. `actor_id`: who asked for a job, or whose notification it
-- is.
CREATE TABLE updates (
    id bigint GENERATED ALWAYS AS IDENTITY,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    workspace_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    subject_id text COLLATE "C" NOT NULL,
    actor_id text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT now()
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX updates_transaction ON updates (transaction_id);
-- A listener that comes back reads the updates of its own workspace only.
CREATE INDEX updates_of_workspace ON updates (workspace_id, transaction_id);

-- At most one row: updates of this transaction and of earlier ones may have been deleted.
CREATE TABLE updates_forgotten (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    until xid8 NOT NULL
);

-- A row for each minute, because updates are deleted by what was visible an hour ago: a transaction may stay open for
-- hours. `oldest`: the oldest transaction that was running then. `next`: the first that had not begun.
CREATE TABLE update_horizons (
    at timestamptz PRIMARY KEY DEFAULT now(),
    oldest xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    next xid8 NOT NULL DEFAULT pg_snapshot_xmax(pg_current_snapshot())
);
INSERT INTO update_horizons DEFAULT VALUES;

-- Identifies the cluster and its timeline, which changes when a standby takes over, or after recovery to a point in
-- time: numbers of transactions are then given out again. Empty if the server does not say, such as Amazon Aurora
-- without logical replication; its standbys share the storage, so none is behind.
CREATE FUNCTION cluster_timeline() RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT to_hex(system_identifier) FROM pg_control_system()) || '/'
        || ltrim(left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), '0');
EXCEPTION WHEN object_not_in_prerequisite_state OR feature_not_supported OR insufficient_privilege THEN
    RETURN '';
END $$;

-- For triggers of statements: a row trigger would double the cost of inserting a message.
CREATE FUNCTION note_updates() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT workspace_id, TG_ARGV[0], id FROM after ORDER BY id;
    RETURN NULL;
END $$;

CREATE TRIGGER note_inserted AFTER INSERT ON messages
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('message');
CREATE TRIGGER note_inserted AFTER INSERT ON conversations
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('conversation');
CREATE TRIGGER note_inserted AFTER INSERT ON runs
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('run');
CREATE TRIGGER note_inserted AFTER INSERT ON notes
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('note');
CREATE TRIGGER note_deleted AFTER DELETE ON notes
    REFERENCING OLD TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_updates('note');

CREATE FUNCTION note_changed_messages() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'message', after.id FROM after JOIN before USING (id)
    WHERE (after.status, after.text, after.provider_time, after.conversation_id, after.send_at, after.failure::text,
            after.attachments::text)
        IS DISTINCT FROM (before.status, before.text, before.provider_time, before.conversation_id, before.send_at,
            before.failure::text, before.attachments::text)
    ORDER BY after.id;
    RETURN NULL;
END $$;

CREATE TRIGGER note_changed AFTER UPDATE ON messages
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_changed_messages();

CREATE FUNCTION note_changed_conversations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'conversation', after.id FROM after JOIN before USING (id)
    WHERE (after.contact_id, after.status, after.assignee_id, after.unread, after.window_ends_at,
            after.last_message_at, after.labels, after.snoozed_until, after.scheduled)
        IS DISTINCT FROM (before.contact_id, before.status, before.assignee_id, before.unread, before.window_ends_at,
            before.last_message_at, before.labels, before.snoozed_until, before.scheduled)
    ORDER BY after.id;
    RETURN NULL;
END $$;

CREATE TRIGGER note_changed AFTER UPDATE ON conversations
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_changed_conversations();

CREATE FUNCTION note_changed_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id)
    SELECT after.workspace_id, 'run', after.id FROM after JOIN before USING (id)
    WHERE (after.status, after.contact_id) IS DISTINCT FROM (before.status, before.contact_id)
    ORDER BY after.id;
    RETURN NULL;
END $$;

CREATE TRIGGER note_changed AFTER UPDATE ON runs
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_changed_runs();

CREATE FUNCTION note_notifications() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id, actor_id)
    SELECT workspace_id, 'notification', id, member_id FROM after ORDER BY id;
    RETURN NULL;
END $$;

CREATE TRIGGER note_inserted AFTER INSERT ON notifications
    REFERENCING NEW TABLE AS after FOR EACH STATEMENT EXECUTE FUNCTION note_notifications();

-- A notification that has happened again has a new identifier.
CREATE FUNCTION note_repeated_notifications() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id, actor_id)
    SELECT workspace_id, 'notification', id, member_id FROM after
    WHERE NOT EXISTS (SELECT FROM before WHERE before.id = after.id) ORDER BY id;
    RETURN NULL;
END $$;

CREATE TRIGGER note_changed AFTER UPDATE ON notifications
    REFERENCING OLD TABLE AS before NEW TABLE AS after FOR EACH STATEMENT
    EXECUTE FUNCTION note_repeated_notifications();

CREATE FUNCTION note_job() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO updates (workspace_id, kind, subject_id, actor_id) VALUES (NEW.workspace_id, 'job', NEW.id, NEW.token_id);
    RETURN NULL;
END $$;

-- Only people listen for their own writes, and nearly all writes are those of tokens: for these, a row trigger whose
-- condition is false costs less than a statement trigger.
CREATE TRIGGER note_inserted AFTER INSERT ON jobs FOR EACH ROW
    WHEN (NEW.token_id >= 'mem_' AND NEW.token_id < 'mem`' OR NEW.token_id >= 'vis_' AND NEW.token_id < 'vis`')
    EXECUTE FUNCTION note_job();
CREATE TRIGGER note_changed AFTER UPDATE OF status ON jobs FOR EACH ROW
    WHEN ((NEW.token_id >= 'mem_' AND NEW.token_id < 'mem`' OR NEW.token_id >= 'vis_' AND NEW.token_id < 'vis`')
        AND NEW.status <> OLD.status)
    EXECUTE FUNCTION note_job();

-- Figures of deliveries, writes and queues.

-- How far the rows behind the figures have been counted.
CREATE TABLE figure_progress (
    name text PRIMARY KEY,
    counted_until timestamptz NOT NULL
);

-- Attempts by the time at which they were recorded. An empty `endpoint_id` stands for the whole workspace, an empty
-- `workspace_id` for all workspaces. `final`: attempts after which the delivery had failed. `buckets`: attempts by
-- duration.
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

-- Failures with one cause. `subject`: the endpoint, the kind of the job, or the automation. `code`: that of the error,
-- the problem or the run's failure. `status`: the receiver's, or the problem's; 0 for none.
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
    workspace_id text COLLATE "C",
    PRIMARY KEY (group_id, starts_at)
) WITH (fillfactor = 70);
CREATE INDEX failure_minutes_age ON failure_minutes (starts_at);

CREATE TABLE failure_hours (
    group_id bigint NOT NULL,
    starts_at timestamptz NOT NULL,
    failed integer NOT NULL,
    final integer NOT NULL,
    workspace_id text COLLATE "C",
    PRIMARY KEY (group_id, starts_at)
) WITH (fillfactor = 70);
CREATE INDEX failure_hours_age ON failure_hours (starts_at);

-- Writes by the minute in which they were accepted, and their outcomes some minutes later. An empty `workspace_id`
-- stands for all.
CREATE TABLE job_minutes (
    workspace_id text COLLATE "C" NOT NULL,
    starts_at timestamptz NOT NULL,
    accepted integer NOT NULL,
    succeeded integer NOT NULL,
    failed integer NOT NULL,
    PRIMARY KEY (workspace_id, starts_at)
);
CREATE INDEX job_minutes_age ON job_minutes (starts_at);

-- Samples: how many rows of a queue were due (counted up to a limit), and for how long the oldest had been.
CREATE TABLE queue_minutes (
    queue text NOT NULL,
    starts_at timestamptz NOT NULL,
    depth integer NOT NULL,
    oldest_seconds real NOT NULL,
    PRIMARY KEY (queue, starts_at)
);
CREATE INDEX queue_minutes_age ON queue_minutes (starts_at);

-- Billing. Months and days are those of UTC; a month is identified by its first day.

-- The plan of a workspace from a month on. A workspace without a row has the default plan.
CREATE TABLE subscriptions (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    since date NOT NULL CHECK (extract(day FROM since) = 1),
    plan text NOT NULL,
    PRIMARY KEY (workspace_id, since)
);

CREATE TABLE usage_days (
    workspace_id text COLLATE "C" NOT NULL,
    day date NOT NULL,
    meter text NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (workspace_id, day, meter)
);

-- Everything created before `counted_until` is counted in usage_days.
CREATE TABLE usage_progress (
    meter text PRIMARY KEY,
    counted_until timestamptz NOT NULL
);

-- The contacts counted in a month, so that each counts once. Deleted when the month is over.
CREATE TABLE active_contacts (
    month date NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (month, workspace_id, contact_id)
);

-- The months since billing began, up to the one that is being closed, which is done up to the workspace `position`.
CREATE TABLE billing_periods (
    month date PRIMARY KEY,
    position text COLLATE "C" NOT NULL DEFAULT '',
    closed_at timestamptz
);

-- Workspaces that were skipped when a month was closed, because their plan is unknown; they are tried again.
CREATE TABLE unbilled (
    month date NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    PRIMARY KEY (month, workspace_id)
);

CREATE TABLE invoices (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    number bigint NOT NULL UNIQUE,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open')),
    plan text NOT NULL,
    currency text NOT NULL,
    period_start timestamptz NOT NULL,
    period_end timestamptz NOT NULL,
    lines json NOT NULL,
    total numeric(14, 2) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (workspace_id, period_start)
);
CREATE INDEX invoices_page ON invoices (workspace_id, id);

-- Processes.

CREATE TABLE leases (
    name text PRIMARY KEY,
    holder text NOT NULL,
    epoch bigint NOT NULL,
    expires_at timestamptz NOT NULL
);

-- How many bytes of files were stored until `ends_at`, by address, visitor, channel and workspace. `key`: a digest.
CREATE TABLE stored_bytes (
    key bytea PRIMARY KEY,
    bytes bigint NOT NULL,
    ends_at timestamptz NOT NULL
);
CREATE INDEX stored_bytes_age ON stored_bytes (ends_at);
