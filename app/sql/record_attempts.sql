-- Records the outcomes of a batch of attempts, each under the claim that its delivery was taken with: an outcome of
-- a lease that has passed to another worker touches nothing and is not logged. A delivery that was cancelled while
-- its attempt was under way stays so. The claim ends with it, so that an outcome counts once. Returns the identifier
-- and the claim of each that was recorded.
--
-- `due_in` is the number of seconds to the next attempt, null where there is none.
WITH outcome AS (
    SELECT * FROM unnest(
        %(ids)s::text[], %(claims)s::int[], %(statuses)s::text[], %(due_in)s::float[], %(errors)s::text[],
        %(ats)s::timestamptz[], %(durations)s::int[], %(codes)s::int[], %(bodies)s::text[]
    ) AS outcome(id, claim, status, due_in, error, at, duration_ms, code, response_body)
), recorded AS (
    UPDATE deliveries
    SET status = CASE deliveries.status WHEN 'cancelled' THEN 'cancelled' ELSE outcome.status END,
        due_at = CASE deliveries.status WHEN 'cancelled' THEN NULL ELSE now() + outcome.due_in * interval '1 second' END,
        claim = deliveries.claim + 1,
        attempts = deliveries.attempts + 1,
        step = deliveries.step + 1,
        last_error = outcome.error,
        delivered_at = CASE WHEN outcome.status = 'delivered' AND deliveries.status <> 'cancelled' THEN now() END
    FROM outcome
    WHERE deliveries.id = outcome.id AND deliveries.claim = outcome.claim
        AND deliveries.status IN ('pending', 'held', 'cancelled')
    RETURNING deliveries.id, deliveries.attempts, outcome.claim
), logged AS (
    INSERT INTO attempts (delivery_id, number, at, duration_ms, status, error, response_body)
    SELECT recorded.id, recorded.attempts, outcome.at, outcome.duration_ms, outcome.code, outcome.error,
        outcome.response_body
    FROM recorded JOIN outcome USING (id, claim)
)
SELECT id, claim FROM recorded
