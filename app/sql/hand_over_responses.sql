-- Hands final responses to the runs that wait for them and deletes the requests; keeps requests whose run is locked.
-- Returns each request whose run became due, with its workspace, and each that is kept, with NULL. A request that was
-- claimed anew changes nothing. Never waits for a run: its transaction may take long.
WITH outcome AS MATERIALIZED (
    SELECT request.id, request.claim, request.run_id, request.wait, new.answer
    FROM unnest(%(ids)s::text[], %(claims)s::int[], %(answers)s::json[]) AS new(id, claim, answer)
    JOIN run_requests request USING (id, claim)
), locked AS MATERIALIZED (
    SELECT id, wait, waits_for FROM runs WHERE id = ANY(ARRAY(SELECT run_id FROM outcome))
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), kept AS MATERIALIZED (
    SELECT id FROM outcome
    WHERE run_id NOT IN (SELECT id FROM locked) AND EXISTS (SELECT FROM runs WHERE runs.id = outcome.run_id)
), done AS (
    DELETE FROM run_requests request USING outcome
    WHERE request.id = outcome.id AND request.claim = outcome.claim AND request.id NOT IN (SELECT id FROM kept)
    RETURNING request.id, outcome.run_id, outcome.wait, outcome.answer
), answered AS (
    UPDATE runs SET answer = done.answer, resume_at = NULL, due_at = clock_timestamp()
    FROM done JOIN locked ON locked.id = done.run_id AND locked.wait = done.wait AND locked.waits_for = 'response'
    WHERE runs.id = done.run_id
    RETURNING done.id, runs.workspace_id
)
SELECT id, workspace_id FROM answered UNION ALL SELECT id, NULL FROM kept
