-- The drafts that editors of automations share, which may be incomplete, with their last states for undo and redo.

-- `state`: the number of the present one. `revision` counts all changes, undo and redo too. `seen`: the fingerprint of
-- the automation's definition as it was written or read last; another one means that it was changed elsewhere.
CREATE TABLE working_copies (
    automation_id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    state integer NOT NULL,
    revision integer NOT NULL,
    seen text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- `done`: what was done, in words; `steps`: the identifiers of those it changed. `actor_id`: null if it was not an
-- editor.
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

-- The step that a member, or staff on a visit, has copied last. `source`: where it came from; `is_cut`: it goes from
-- there when it is pasted.
CREATE TABLE step_clipboards (
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    actor_id text COLLATE "C" NOT NULL,
    step json NOT NULL,
    source_id text COLLATE "C" NOT NULL,
    is_cut boolean NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, actor_id)
);
