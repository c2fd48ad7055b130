-- Contacts (`id`) that have become part of another (`kept_id`) while rows of theirs are still to follow.
CREATE TABLE pending_merges (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    kept_id text COLLATE "C" NOT NULL
);
CREATE INDEX pending_merges_kept ON pending_merges (kept_id);
