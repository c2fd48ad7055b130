-- What pages list besides the API: failed writes about a contact, and failed runs by cause.
--
-- Both indexes hold failures alone, so a write or a run that succeeds costs nothing.
CREATE INDEX jobs_failed_of_contact ON jobs ((coalesce(payload->>'contact_id', resource_id)), id)
    WHERE status = 'failed';
CREATE INDEX runs_failure_page ON runs (workspace_id, (failure->>'code'), id) WHERE failure IS NOT NULL;
