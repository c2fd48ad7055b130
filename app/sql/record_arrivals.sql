-- Records the outcomes of arrivals. `waits`: the arrival is a receipt that looks for its message again later, at
-- growing intervals, for `kept_seconds` in all. `problems`: why an arrival failed, null if it did not. `ends`: a failed
-- arrival is given up. A processed arrival keeps only its key.
UPDATE arrivals
SET payload = CASE WHEN outcome.waits OR outcome.problem IS NOT NULL THEN arrivals.payload END,
    -- Nor does a processed arrival keep its sender.
    sender_key = CASE WHEN outcome.waits OR outcome.problem IS NOT NULL THEN arrivals.sender_key
        ELSE arrivals.channel_id END,
    errors = arrivals.errors + CASE WHEN outcome.problem IS NULL THEN 0 ELSE 1 END,
    problem = CASE WHEN outcome.ends THEN outcome.problem END,
    next_attempt_at = CASE WHEN outcome.waits
        THEN now() + least(greatest(now() - arrivals.created_at, interval '1 second'), interval '1 hour') END,
    due_at = CASE WHEN outcome.problem IS NOT NULL AND NOT outcome.ends
        THEN now() + arrivals.errors * interval '5 seconds' + interval '1 second' END,
    leased_until = NULL
FROM (
    SELECT new.id, new.problem, new.ends,
        new.waits AND stored.created_at > now() - %(kept_seconds)s * interval '1 second' AS waits
    FROM unnest(%(ids)s::text[], %(waits)s::boolean[], %(problems)s::text[], %(ends)s::boolean[])
        AS new(id, waits, problem, ends)
    JOIN arrivals AS stored ON stored.id = new.id AND stored.id = ANY(%(ids)s)
) AS outcome
WHERE arrivals.id = outcome.id AND arrivals.id = ANY(%(ids)s)
