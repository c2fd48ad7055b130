-- Segments of contacts, and the schedules on which automations start runs for them.

CREATE TABLE segments (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    name text NOT NULL,
    filter json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX segments_page ON segments (workspace_id, id);

-- The latest message that a contact wrote, and the latest that it was sent.
CREATE INDEX messages_received ON messages (contact_id, coalesce(provider_time, created_at)) WHERE direction = 'in';
CREATE INDEX messages_sent_to ON messages (contact_id, sent_at) WHERE sent_at IS NOT NULL;

-- One row for each trigger of a published version that starts runs for a segment. `key`: the trigger without its
-- condition. `next_at`: when it does so next, or has begun to. `began_at`: since when it does; null: it does not now.
-- `reached`: the last contact that it has looked at.
CREATE TABLE schedules (
    automation_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    segment_id text COLLATE "C" NOT NULL,
    next_at timestamptz NOT NULL,
    began_at timestamptz,
    reached text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (automation_id, key)
);
CREATE INDEX schedules_segment ON schedules (segment_id);
CREATE INDEX schedules_workspace ON schedules (workspace_id);
CREATE INDEX schedules_next ON schedules (next_at);
