-- What providers are to be asked about channels: to connect them, or to end the connection. Mail of their workspace.

-- One row for each channel with something to ask. `revision` grows when what is wanted changes, so that what comes of an
-- attempt for an earlier revision is not taken for an answer to the present one.
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

-- Two channels cannot receive for one account at its provider.
CREATE INDEX channels_account ON channels (kind, account) WHERE account IS NOT NULL;
CREATE INDEX channels_deleted ON channels (deleted_at) WHERE deleted_at IS NOT NULL;

-- A provider has refused a channel's credentials.
ALTER TABLE notifications
    DROP CONSTRAINT notifications_kind_check,
    ADD CONSTRAINT notifications_kind_check
        CHECK (kind IN ('endpoint_stopped', 'import_ended', 'usage_high', 'channel_refused')) NOT VALID;
COMMIT;
ALTER TABLE notifications VALIDATE CONSTRAINT notifications_kind_check;
