-- Runs that begin when contacts enter a segment.

-- For entries: whether the roll has those that were in the segment at the publication; the others have entered it since.
ALTER TABLE schedules ADD COLUMN is_filled boolean NOT NULL DEFAULT false;

-- Rolls: the contacts that were in the segment when a schedule of an automation last looked at them.
CREATE TABLE segment_contacts (
    automation_id text COLLATE "C" NOT NULL,
    segment_id text COLLATE "C" NOT NULL,
    contact_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (automation_id, segment_id, contact_id)
);
