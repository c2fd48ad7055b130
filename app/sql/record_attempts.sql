-- Records the outcomes of a batch of attempts, each under the claim that its delivery was taken with: an outcome of
-- a lease that has passed to another worker touches nothing and is not logged. What was cancelled while its attempt
-- was under way stays so; what would be tried again is held where its endpoint was stopped meanwhile. The lease ends
-- with it, so that an outcome counts once. An endpoint that has answered has its count of failures set to 0; its row is
-- touched only if it is not 0 already, so that busy healthy endpoints do not fight for it.
--
-- The identifiers are from `first_id` to `last_id`. `ats` are Unix times. `due_in` is the number of seconds to the next
-- attempt, null where there is none; `answering` are endpoints none of whose attempts here failed. Returns the
-- identifier and the claim of each outcome that was not recorded.
WITH outcome AS (
    SELECT * FROM unnest(
        %(ids)s::text[], %(claims)s::int[], %(statuses)s::text[], %(due_in)s::float[], %(errors)s::text[],
        %(ats)s::float[], %(durations)s::int[], %(codes)s::int[], %(bodies)s::text[], %(states)s::text[]
    ) AS outcome(id, claim, status, due_in, error, at, duration_ms, code, response_body, state)
), recorded AS (
    UPDATE deliveries
    SET status = CASE WHEN deliveries.status = 'cancelled' OR (outcome.status = 'pending' AND outcome.state = 'deleted')
                THEN 'cancelled'
            WHEN outcome.status = 'pending' AND outcome.state = 'stopped' THEN 'held'
            ELSE outcome.status END,
        due_at = CASE WHEN deliveries.status <> 'cancelled' AND outcome.state = 'active'
            THEN now() + outcome.due_in * interval '1 second' END,
        leased_until = NULL,
        attempts = deliveries.attempts + 1,
        step = deliveries.step + 1,
        last_error = outcome.error,
        delivered_at = CASE WHEN outcome.status = 'delivered' AND deliveries.status <> 'cancelled' THEN now() END
    FROM outcome
    WHERE deliveries.id = outcome.id AND deliveries.claim = outcome.claim AND deliveries.leased_until IS NOT NULL
        AND deliveries.id = ANY(%(ids)s)
        AND deliveries.id >= %(first_id)s AND deliveries.id <= %(last_id)s
        AND deliveries.status IN ('pending', 'held', 'cancelled')
    RETURNING deliveries.id, deliveries.endpoint_id, deliveries.attempts, deliveries.step, deliveries.trigger, outcome.claim
), logged AS (
    INSERT INTO attempts (delivery_id, number, at, duration_ms, status, error, response_body, trigger)
    SELECT recorded.id, recorded.attempts, to_timestamp(outcome.at), outcome.duration_ms, outcome.code, outcome.error,
        outcome.response_body, CASE recorded.step WHEN 1 THEN recorded.trigger ELSE 'automatic' END
    FROM recorded JOIN outcome USING (id, claim)
), answered AS (
    UPDATE endpoints SET consecutive_failures = 0, answered = true
    WHERE id IN (
        SELECT id FROM endpoints
        WHERE id = ANY(%(answering)s) AND NOT answered AND state = 'active'
            AND id IN (SELECT endpoint_id FROM recorded)
        ORDER BY id FOR NO KEY UPDATE)
)
SELECT id, claim FROM outcome WHERE (id, claim) NOT IN (SELECT id, claim FROM recorded)
