-- Deletes idempotency keys whose window is over, oldest first, a batch at a time.
DELETE FROM idempotency_keys WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM idempotency_keys WHERE created_at < now() - %(window)s::interval
    ORDER BY created_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED))
RETURNING job_id
