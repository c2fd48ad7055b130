-- What finds and changes conversations in the inbox: views that members save, and changes of many conversations.

-- `member_id`: whose it is; null: the workspace's.
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

-- Conversations that were chosen together, and the change that is made to each. `total` is null until they are written
-- down in `selection_parts`, whose rows go as they are worked.
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
    PRIMARY KEY (selection_id, number)
);
