-- Runs that wait for an event of their contact. Automations listen to these kinds of events under keys that begin with
-- 'awaited ', for all their versions.

-- Not validated: that would read the whole table under its lock, and every row was checked when it was written.
ALTER TABLE runs DROP CONSTRAINT runs_waits_for_check, ADD CONSTRAINT runs_waits_for_check
    CHECK (waits_for IN ('time', 'reply', 'response', 'run', 'event', 'quiet_hours', 'member', 'pause')) NOT VALID;
CREATE INDEX runs_awaiting ON runs (contact_id, automation_id, id) WHERE waits_for = 'event';
