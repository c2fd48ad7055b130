-- Stores the outcomes of a batch of jobs. Their payloads are deleted, except of jobs that failed unexpectedly.
UPDATE jobs
SET status = done.status, effect = done.effect, resource_type = done.resource_type, resource_id = done.resource_id,
    problem = done.problem, broke = done.broke, payload = CASE WHEN done.keeps_payload THEN jobs.payload END,
    due_at = NULL, leased_until = NULL, finished_at = (SELECT clock_timestamp())
FROM unnest(
    %(ids)s::text[], %(statuses)s::text[], %(effects)s::text[], %(types)s::text[], %(resources)s::text[],
    %(problems)s::json[], %(breakages)s::json[], %(keeps)s::boolean[]
) AS done(id, status, effect, resource_type, resource_id, problem, broke, keeps_payload)
WHERE jobs.id = done.id
    AND jobs.id = ANY(%(ids)s) -- reads only the partitions that contain them
