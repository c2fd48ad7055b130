-- Records the outcomes of a batch of attempts, each under the claim of its delivery: an outcome under a lease that has
-- passed to another worker changes nothing and is not logged. A delivery that was cancelled during its attempt stays
-- cancelled; a retry is held if the endpoint was stopped meanwhile. Recording ends the lease, so that an outcome counts
-- once. A fault of our own, with the code `ours`, is not an attempt. An attempt is logged with the trigger of its
-- delivery, which is `automatic` from then on.
--
-- An endpoint that has answered has its count of failures set to 0, and is not probed any more. Its row is changed only
-- if it has failed before, so that busy healthy endpoints do not contend for it.
--
-- Never waits for a row lock. An outcome is left out, to be recorded later, if another transaction has locked its
-- delivery, or its endpoint whose row would have to change.
--
-- The identifiers are from `first_id` to `last_id`. `ats` are Unix times, `answers` the receivers' statuses. `due_in`
-- is the number of seconds to the next attempt, null if there is none; `answering` are endpoints none of whose attempts
-- here failed. Returns the identifier and the claim of each outcome that was not recorded; and, with a null claim, the
-- endpoints that were probed and have answered.
WITH outcome AS (
    SELECT * FROM unnest(
        %(ids)s::text[], %(claims)s::int[], %(statuses)s::text[], %(due_in)s::float[], %(errors)s::text[],
        %(error_codes)s::text[], %(ats)s::float[], %(durations)s::int[], %(answers)s::int[], %(bodies)s::text[],
        %(states)s::text[]
    ) AS outcome(id, claim, status, due_in, error, error_code, at, duration_ms, answer, response_body, state)
), failing AS (
    SELECT id, probe_at IS NOT NULL AS is_probed FROM endpoints
    WHERE id = ANY(%(answering)s) AND consecutive_failures > 0 AND state = 'active'
), mending AS (
    SELECT id FROM endpoints WHERE id IN (SELECT id FROM failing) AND state = 'active'
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), free AS (
    SELECT id, claim, trigger FROM deliveries
    WHERE deliveries.id = ANY(%(ids)s) AND deliveries.id >= %(first_id)s AND deliveries.id <= %(last_id)s
        AND deliveries.leased_until IS NOT NULL AND deliveries.status IN ('pending', 'held', 'cancelled')
        AND NOT EXISTS (
            SELECT FROM failing
            WHERE failing.id = deliveries.endpoint_id AND failing.id NOT IN (SELECT id FROM mending))
    FOR NO KEY UPDATE SKIP LOCKED
), recorded AS (
    UPDATE deliveries
    SET status = CASE WHEN deliveries.status = 'cancelled' OR (outcome.status = 'pending' AND outcome.state = 'deleted')
                THEN 'cancelled'
            WHEN outcome.status = 'pending' AND outcome.state = 'stopped' THEN 'held'
            ELSE outcome.status END,
        due_at = NULL,
        next_attempt_at = CASE WHEN deliveries.status <> 'cancelled' AND outcome.state = 'active'
            THEN now() + outcome.due_in * interval '1 second' END,
        leased_until = NULL,
        attempts = deliveries.attempts + spent,
        tries = deliveries.tries + spent,
        trigger = CASE spent WHEN 0 THEN free.trigger ELSE 'automatic' END,
        last_error = outcome.error,
        last_error_code = outcome.error_code,
        last_status = CASE spent WHEN 0 THEN deliveries.last_status ELSE outcome.answer END,
        delivered_at = CASE WHEN outcome.status = 'delivered' AND deliveries.status <> 'cancelled' THEN now() END
    FROM outcome JOIN free USING (id, claim)
    CROSS JOIN LATERAL (SELECT CASE outcome.error_code WHEN 'ours' THEN 0 ELSE 1 END) AS counted(spent)
    WHERE deliveries.id = free.id AND deliveries.id >= %(first_id)s AND deliveries.id <= %(last_id)s
    RETURNING deliveries.id, deliveries.workspace_id, deliveries.endpoint_id, deliveries.attempts, free.trigger,
        outcome.claim
), logged AS (
    INSERT INTO attempts
        (delivery_id, workspace_id, number, at, duration_ms, status, error, error_code, response_body, trigger)
    SELECT recorded.id, recorded.workspace_id, recorded.attempts, to_timestamp(outcome.at), outcome.duration_ms,
        outcome.answer, outcome.error, outcome.error_code, outcome.response_body, recorded.trigger
    FROM recorded JOIN outcome USING (id, claim)
    WHERE outcome.error_code IS DISTINCT FROM 'ours'
), mended AS (
    UPDATE endpoints SET consecutive_failures = 0, probe_at = NULL
    WHERE id IN (SELECT id FROM mending) AND id IN (SELECT endpoint_id FROM recorded)
    RETURNING id
)
SELECT id, claim FROM outcome WHERE (id, claim) NOT IN (SELECT id, claim FROM recorded)
UNION ALL SELECT id, NULL FROM mended JOIN failing USING (id) WHERE is_probed
