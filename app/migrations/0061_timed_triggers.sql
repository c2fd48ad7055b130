-- Triggers by time: those of published versions, and the runs that each will start.

-- `key`: the trigger without its condition. `since`: from when on the automation has it. `scanned_to`: how far the scan
-- of what was there before has got; null: it is over. `begins_at`: the transactions before this one must have ended
-- before the scan begins, as they may not have seen the trigger. `is_ended`: the published version does not have it any
-- more, and the scan removes what waits.
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

-- One row for each automation, trigger and what it is about: a booking, until that begins, or a contact. `at`: when its
-- run starts; or when the row of a booking is removed for which it has. `fired_for`: the latest day for which it has.
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
