-- Imports of contacts; search by keys of a workspace's own; an index for every filter of a list.

-- `done` lines have taken effect, `failed` ones have an entry in import_errors; when the job has ended no line is left.
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

-- Lines that wait for their turn: each is deleted in the transaction that applies it.
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

-- Runs of some thousand contacts of a workspace in the order of their identifiers, which a search goes through from the
-- newest on. A contact is of the last that begins at or below its identifier, or of segment 0, which has no row. Rows
-- are added, and contacts too, only by who has the workspace's turn (app/mailbox.py).
CREATE TABLE contact_segments (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    number integer NOT NULL,
    from_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, number)
);

-- What a contact is found by with `q` and `tag`: a number for every two and three characters in a row of its text, and
-- for each of its tags, other numbers in each segment. So a search costs nothing for what other workspaces have, and
-- two letters or signs alone are found by index as well. Two texts may have the same numbers: the text decides.
-- The numbers of a segment lie side by side, so that what is written at one time changes few places of the index.
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

-- Those of these keys that a search asks for: as few as hold every character, and ten at most, as each costs a look.
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

-- What waits in the list of an index that is not merged yet costs a search a look for each segment: 256 kB.
CREATE INDEX contacts_keys ON contacts USING gin (contact_keys(workspace_id, segment, search, tags))
    WITH (gin_pending_list_limit = 256);
CREATE INDEX contacts_updated ON contacts (workspace_id, segment, updated_at);

CREATE INDEX jobs_filtered_page ON jobs (workspace_id, kind, status, id);
CREATE INDEX deliveries_kind_page ON deliveries (workspace_id, kind, id);
-- Most are delivered, and found in the order of the page.
CREATE INDEX deliveries_status_page ON deliveries (workspace_id, status, id) WHERE status <> 'delivered';
CREATE INDEX sweeps_action_page ON sweeps (workspace_id, action, id);
CREATE INDEX sweeps_endpoint_page ON sweeps (endpoint_id, id);
CREATE INDEX audit_entries_action_page ON audit_entries (workspace_id, action, id);
CREATE INDEX audit_entries_target ON audit_entries (target_id);
