-- Imports of contacts; search by keys that each workspace has for itself; an index for every filter of a list.

-- `done` lines have taken effect, `failed` ones have a row in import_errors. A finished import has no lines left.
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
    PRIMARY KEY (import_id, number)
);

CREATE TABLE import_errors (
    import_id text COLLATE "C" NOT NULL REFERENCES imports ON DELETE CASCADE,
    number integer NOT NULL,
    problem json NOT NULL,
    PRIMARY KEY (import_id, number)
);

-- Runs of some thousand contacts of a workspace in the order of their identifiers. A search goes through them from the
-- newest to the oldest. A contact belongs to the last segment that begins at or below its identifier, or to segment 0,
-- which has no row.
CREATE TABLE contact_segments (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    number integer NOT NULL,
    from_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, number)
);

-- The search keys of a contact, for `q` and `tag`: a number for every two and three consecutive characters of its text
-- and for each tag, different in each segment. So a search never reads what other workspaces have, and even two letters
-- or punctuation are found by index. Two texts may share numbers, so the text itself is compared as well.
-- The numbers of a segment are adjacent, so contacts written together change few places of the index.
CREATE FUNCTION contact_keys(workspace_id text, segment integer, search text, tags text[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
DECLARE
    seed bigint := hashtextextended(workspace_id, segment) << 32;
    keys bigint[] := '{}';
    tag text;
BEGIN
    FOR place IN 1 .. char_length(search) - 1 LOOP
        keys := keys || (seed # (hashtextextended(substr(search, place, 2), 0) & 4294967295))
            || (seed # (hashtextextended(substr(search, place, 3), 0) & 4294967295));
    END LOOP;
    FOREACH tag IN ARRAY tags LOOP
        keys := keys || (seed # (hashtextextended(tag, 1) & 4294967295));
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

-- A search scans the index's pending list once for every segment, so it is limited to 256 kB.
CREATE INDEX contacts_keys ON contacts USING gin (contact_keys(workspace_id, segment, search, tags))
    WITH (gin_pending_list_limit = 256);
CREATE INDEX contacts_updated ON contacts (workspace_id, segment, updated_at);

CREATE INDEX jobs_filtered_page ON jobs (workspace_id, kind, status, id);
CREATE INDEX deliveries_kind_page ON deliveries (workspace_id, kind, id);
-- Without `delivered`: most deliveries are, and are found in page order.
CREATE INDEX deliveries_status_page ON deliveries (workspace_id, status, id) WHERE status <> 'delivered';
CREATE INDEX sweeps_action_page ON sweeps (workspace_id, action, id);
CREATE INDEX sweeps_endpoint_page ON sweeps (endpoint_id, id);
CREATE INDEX audit_entries_action_page ON audit_entries (workspace_id, action, id);
CREATE INDEX audit_entries_target ON audit_entries (target_id);
