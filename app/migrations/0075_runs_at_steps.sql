-- The runs that wait in a step of a version, and those that failed in it, as the picture of an automation counts them.

CREATE INDEX runs_waiting_step ON runs (automation_id, version, step, id) WHERE waits_for IS NOT NULL;
CREATE INDEX runs_failed_step ON runs (automation_id, version, step, id) WHERE status = 'failed';
