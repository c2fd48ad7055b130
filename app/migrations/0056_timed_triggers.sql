-- Triggers by time: those of published versions, and the runs that each will start.

-- `key`: the trigger without its condition. `since`: from when on the automation has it. `scanned_to`: how far the search
-- for what was there before has got; null: it is over. `is_ended`: the published version does not have it any more, and
-- what waits for it is being removed.
CREATE TABLE timed_triggers (
    automation_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    since timestamptz NOT NULL DEFAULT now(),
    scanned_to text COLLATE "C" DEFAULT '',
    is_ended boolean NOT NULL DEFAULT false,
    PRIMARY KEY (automation_id, key)
);
CREATE INDEX timed_triggers_workspace ON timed_triggers (workspace_id) WHERE NOT is_ended;
CREATE INDEX timed_triggers_scans ON timed_triggers (workspace_id, automation_id, key) WHERE scanned_to IS NOT NULL;

-- One row for each automation, trigger and what it is about: a booking or a contact, with which it goes.
-- `starts_at`: when it becomes mail.
CREATE TABLE waiting_starts (
    id text COLLATE "C" PRIMARY KEY,
    workspace_id text COLLATE "C" NOT NULL REFERENCES workspaces,
    automation_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    booking_id text COLLATE "C" REFERENCES bookings ON DELETE CASCADE,
    contact_id text COLLATE "C" REFERENCES contacts ON DELETE CASCADE,
    starts_at timestamptz,
    due_at timestamptz,
    leased_until timestamptz,
    claim integer NOT NULL DEFAULT 0,
    CHECK (num_nonnulls(booking_id, contact_id) = 1)
) WITH (fillfactor = 80);
CREATE INDEX waiting_starts_mail ON waiting_starts (workspace_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX waiting_starts_waiting ON waiting_starts (starts_at) WHERE starts_at IS NOT NULL;
CREATE INDEX waiting_starts_trigger ON waiting_starts (automation_id, key);
CREATE INDEX waiting_starts_booking ON waiting_starts (booking_id) WHERE booking_id IS NOT NULL;
CREATE INDEX waiting_starts_contact ON waiting_starts (contact_id) WHERE contact_id IS NOT NULL;
