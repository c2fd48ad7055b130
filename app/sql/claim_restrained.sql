-- Claims due deliveries of restrained endpoints: one of an endpoint whose next probe is due, as many as a rate limit
-- allows now, and of an ordered endpoint the oldest unfinished delivery, if it is due. `rooms` are the most per
-- endpoint, `starts` the marks (`marks.py`), `is_slow` names the lane.
--
-- The lock on the endpoint's row makes all of this exact across all processes. While a probe is in progress, `probe_at`
-- is the end of its lease; recording its outcome sets the time of the next probe. Deliveries of a rate-limited endpoint
-- are claimed at the times `paced_until`, `paced_until` + 1 / limit, and so on; a delay of at most a tenth of a second
-- is caught up. In order, nothing is claimed while the last claimed delivery, `head_id`, is in progress. Never waits
-- for a lock.
--
-- Returns a row for each claim, oldest first: the columns of a claim, whether it is a probe, and whether the endpoint
-- is ordered, in which case it is unknown how long the delivery `waited`. Also returns a row for each endpoint to check
-- again, without a claim: in how many seconds.
WITH seen AS MATERIALIZED (
    SELECT endpoints.id, room, timestamptz 'epoch' + greatest(start, 0) * interval '1 microsecond' AS mark, paced_until,
        head_id, max_per_second IS NOT NULL OR ordered AS is_served_here
    FROM unnest(%(ids)s::text[], %(rooms)s::int[], %(starts)s::bigint[]) AS box(id, room, start)
    JOIN endpoints USING (id)
    WHERE endpoints.id = ANY(%(ids)s) AND state = 'active' AND (slow_until > now()) IS TRUE = %(is_slow)s
        AND (probe_at <= now() OR (probe_at IS NULL AND (max_per_second IS NOT NULL OR ordered)))
), locked AS MATERIALIZED (
    SELECT endpoints.id, room, mark, endpoints.probe_at IS NOT NULL AS is_probe, endpoints.ordered,
        endpoints.head_id, endpoints.max_per_second, endpoints.paced_until,
        greatest(endpoints.paced_until, now() - interval '0.1 seconds') AS paced_from
    FROM seen JOIN endpoints USING (id)
    WHERE state = 'active' AND (endpoints.probe_at > now()) IS NOT TRUE AND (endpoints.paced_until > now()) IS NOT TRUE
        -- If another process has claimed since this statement began, the head seen here is outdated.
        AND endpoints.head_id IS NOT DISTINCT FROM seen.head_id
    ORDER BY endpoints.id FOR NO KEY UPDATE OF endpoints SKIP LOCKED
), allowed AS MATERIALIZED (
    SELECT *, least(CASE WHEN is_probe OR ordered THEN 1 ELSE room END, pace) AS number
    FROM locked CROSS JOIN LATERAL (
        SELECT floor(extract(epoch FROM now() - paced_from) * max_per_second)::int + 1 AS pace) AS paced
), oldest AS (
    SELECT oldest.* FROM allowed CROSS JOIN LATERAL (
        SELECT id, endpoint_id, due_at, leased_until FROM deliveries
        WHERE endpoint_id = allowed.id AND due_at >= mark AND due_at <= now() AND (leased_until > now()) IS NOT TRUE
        ORDER BY due_at LIMIT allowed.number FOR NO KEY UPDATE SKIP LOCKED
    ) AS oldest
    WHERE NOT ordered
), heads AS MATERIALIZED (
    SELECT head.id FROM allowed CROSS JOIN LATERAL (
        SELECT id FROM deliveries
        WHERE (endpoint_id, (status = 'pending')) >= (allowed.id, true)
            AND (endpoint_id, (status = 'pending')) <= (allowed.id, true)
            AND status IN ('pending', 'held', 'failed')
        ORDER BY endpoint_id, (status = 'pending'), id LIMIT 1
    ) AS head
    WHERE ordered AND NOT EXISTS (SELECT FROM deliveries WHERE id = allowed.head_id AND leased_until > now())
), first AS (
    SELECT deliveries.id, endpoint_id, due_at, leased_until FROM heads JOIN deliveries USING (id)
    WHERE due_at <= now() AND (leased_until > now()) IS NOT TRUE
    FOR NO KEY UPDATE OF deliveries SKIP LOCKED
), claimed AS (
    UPDATE deliveries SET leased_until = now() + %(lease_seconds)s * interval '1 second', claim = claim + 1
    FROM (SELECT * FROM oldest UNION ALL SELECT * FROM first) AS due JOIN allowed ON allowed.id = due.endpoint_id
    WHERE deliveries.id = due.id
    RETURNING deliveries.id, deliveries.endpoint_id, claim,
        CASE WHEN ordered THEN 'NaN'
            ELSE extract(epoch FROM now() - greatest(due.due_at, due.leased_until, paced_until)) END::float AS waited,
        is_probe, ordered, due.due_at, event_id, kind, tries
), taken AS (
    SELECT allowed.*, claims, last_id, paced_from + claims * interval '1 second' / max_per_second AS next_at
    FROM allowed JOIN (
        SELECT endpoint_id AS id, count(*) AS claims, max(id) AS last_id FROM claimed GROUP BY endpoint_id
    ) AS counted USING (id)
), postponed AS (
    UPDATE endpoints
    SET probe_at = CASE WHEN is_probe THEN now() + %(lease_seconds)s * interval '1 second' END,
        paced_until = coalesce(next_at, endpoints.paced_until),
        head_id = CASE WHEN taken.ordered THEN last_id END
    FROM taken WHERE endpoints.id = taken.id
)
SELECT id, endpoint_id, claim, waited, is_probe, ordered, event_id, kind, tries, NULL AS seconds FROM (
    SELECT * FROM claimed ORDER BY due_at) AS oldest_first
UNION ALL
SELECT NULL, seen.id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, extract(epoch FROM CASE
    WHEN seen.paced_until > now() THEN seen.paced_until - now()
    WHEN allowed.id IS NULL THEN interval '0.05 seconds'  -- another transaction has locked it for the moment
    ELSE next_at - now() END)::float
FROM seen LEFT JOIN allowed USING (id) LEFT JOIN taken USING (id)
WHERE is_served_here AND (allowed.id IS NULL OR taken.claims = taken.pace)
