-- Stores an accepted write and its idempotency key, or nothing if the key is taken. A key whose window is over is free.
-- A second request with the key waits here until the first has committed, so that only one job is created.
WITH taken AS (
    INSERT INTO idempotency_keys (token_id, workspace_id, key, fingerprint, job_id)
    VALUES (%(actor_id)s, %(workspace_id)s, %(key)s, %(fingerprint)s, %(id)s)
    ON CONFLICT (token_id, key) DO UPDATE
    SET fingerprint = excluded.fingerprint, job_id = excluded.job_id, created_at = now()
    WHERE idempotency_keys.created_at < now() - %(window)s::interval
    RETURNING job_id
)
INSERT INTO jobs (id, workspace_id, token_id, kind, payload, resource_type, resource_id, trace_id)
SELECT job_id, %(workspace_id)s, %(actor_id)s, %(kind)s, %(payload)s, %(resource_type)s, %(resource_id)s, %(trace_id)s
FROM taken
RETURNING created_at
