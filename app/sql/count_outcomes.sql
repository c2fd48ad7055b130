-- Adds the attempts, failed jobs and failed runs recorded from `since` to `until` to the figures of their minutes and
-- hours, and to the groups of failures. Repeating it counts twice. Returns how many there were.
--
-- Buckets count only attempts that got an answer: a time-out says nothing about how long answers take.
--
-- The lateral query keeps the planner from joining all deliveries: a delivery is found by its identifier.
WITH made AS MATERIALIZED (
    SELECT date_trunc('minute', recorded_at) AS minute, delivery.workspace_id, delivery.endpoint_id, error_code,
        coalesce(attempts.status, 0) AS status, delivery.is_final,
        CASE WHEN attempts.status IS NOT NULL THEN width_bucket(duration_ms, %(bounds)s::int[]) END AS bucket,
        count(*) AS number, sum(duration_ms) AS duration_ms,
        min(recorded_at) AS first_at, max(recorded_at) AS last_at
    FROM attempts CROSS JOIN LATERAL (
        SELECT workspace_id, endpoint_id,
            deliveries.status = 'failed' AND deliveries.attempts = attempts.number AS is_final
        FROM deliveries WHERE deliveries.id = attempts.delivery_id OFFSET 0) AS delivery
    WHERE recorded_at >= %(since)s AND recorded_at < %(until)s
    GROUP BY 1, 2, 3, 4, 5, 6, 7
), deliveries_of_minutes AS MATERIALIZED (
    SELECT coalesce(workspace_id, '') AS workspace_id, coalesce(endpoint_id, '') AS endpoint_id, minute,
        sum(number) AS attempts, coalesce(sum(number) FILTER (WHERE error_code IS NULL), 0) AS delivered,
        coalesce(sum(number) FILTER (WHERE is_final), 0) AS final, sum(duration_ms) AS duration_ms, ARRAY[
            coalesce(sum(number) FILTER (WHERE bucket = 0), 0), coalesce(sum(number) FILTER (WHERE bucket = 1), 0),
            coalesce(sum(number) FILTER (WHERE bucket = 2), 0), coalesce(sum(number) FILTER (WHERE bucket = 3), 0),
            coalesce(sum(number) FILTER (WHERE bucket = 4), 0), coalesce(sum(number) FILTER (WHERE bucket = 5), 0),
            coalesce(sum(number) FILTER (WHERE bucket = 6), 0), coalesce(sum(number) FILTER (WHERE bucket = 7), 0),
            coalesce(sum(number) FILTER (WHERE bucket = 8), 0), coalesce(sum(number) FILTER (WHERE bucket = 9), 0),
            coalesce(sum(number) FILTER (WHERE bucket = 10), 0), coalesce(sum(number) FILTER (WHERE bucket = 11), 0),
            coalesce(sum(number) FILTER (WHERE bucket = 12), 0)
        ]::int[] AS buckets
    FROM made GROUP BY GROUPING SETS ((minute, workspace_id, endpoint_id), (minute, workspace_id), (minute))
), added_to_minutes AS (
    INSERT INTO delivery_minutes AS kept
        (workspace_id, endpoint_id, starts_at, attempts, delivered, final, duration_ms, buckets)
    SELECT * FROM deliveries_of_minutes
    ON CONFLICT (workspace_id, endpoint_id, starts_at) DO UPDATE SET
        attempts = kept.attempts + excluded.attempts, delivered = kept.delivered + excluded.delivered,
        final = kept.final + excluded.final, duration_ms = kept.duration_ms + excluded.duration_ms,
        buckets = ARRAY[
            kept.buckets[1] + excluded.buckets[1], kept.buckets[2] + excluded.buckets[2],
            kept.buckets[3] + excluded.buckets[3], kept.buckets[4] + excluded.buckets[4],
            kept.buckets[5] + excluded.buckets[5], kept.buckets[6] + excluded.buckets[6],
            kept.buckets[7] + excluded.buckets[7], kept.buckets[8] + excluded.buckets[8],
            kept.buckets[9] + excluded.buckets[9], kept.buckets[10] + excluded.buckets[10],
            kept.buckets[11] + excluded.buckets[11], kept.buckets[12] + excluded.buckets[12],
            kept.buckets[13] + excluded.buckets[13]]
), added_to_hours AS (
    INSERT INTO delivery_hours AS kept
        (workspace_id, endpoint_id, starts_at, attempts, delivered, final, duration_ms, buckets)
    SELECT workspace_id, endpoint_id, date_trunc('hour', minute), sum(attempts), sum(delivered), sum(final),
        sum(duration_ms), ARRAY[
            sum(buckets[1]), sum(buckets[2]), sum(buckets[3]), sum(buckets[4]), sum(buckets[5]),
            sum(buckets[6]), sum(buckets[7]), sum(buckets[8]), sum(buckets[9]), sum(buckets[10]),
            sum(buckets[11]), sum(buckets[12]), sum(buckets[13])]::int[]
    FROM deliveries_of_minutes GROUP BY workspace_id, endpoint_id, date_trunc('hour', minute)
    ON CONFLICT (workspace_id, endpoint_id, starts_at) DO UPDATE SET
        attempts = kept.attempts + excluded.attempts, delivered = kept.delivered + excluded.delivered,
        final = kept.final + excluded.final, duration_ms = kept.duration_ms + excluded.duration_ms,
        buckets = ARRAY[
            kept.buckets[1] + excluded.buckets[1], kept.buckets[2] + excluded.buckets[2],
            kept.buckets[3] + excluded.buckets[3], kept.buckets[4] + excluded.buckets[4],
            kept.buckets[5] + excluded.buckets[5], kept.buckets[6] + excluded.buckets[6],
            kept.buckets[7] + excluded.buckets[7], kept.buckets[8] + excluded.buckets[8],
            kept.buckets[9] + excluded.buckets[9], kept.buckets[10] + excluded.buckets[10],
            kept.buckets[11] + excluded.buckets[11], kept.buckets[12] + excluded.buckets[12],
            kept.buckets[13] + excluded.buckets[13]]
), failures AS (
    SELECT 'delivery' AS kind, workspace_id, endpoint_id AS subject, error_code AS code, status, minute, number,
        is_final, first_at, last_at
    FROM made WHERE error_code IS NOT NULL
    UNION ALL
    SELECT 'job', workspace_id, kind, coalesce(substring(problem->>'type' FROM '[^/]*$'), 'internal-error'),
        coalesce((problem->>'status')::int, 0), date_trunc('minute', finished_at), 1, true, finished_at, finished_at
    FROM jobs WHERE status = 'failed' AND finished_at >= %(since)s AND finished_at < %(until)s
    UNION ALL
    SELECT 'run', workspace_id, automation_id, coalesce(failure->>'code', ''), 0, date_trunc('minute', finished_at), 1,
        true, finished_at, finished_at
    FROM runs WHERE status = 'failed' AND finished_at >= %(since)s AND finished_at < %(until)s
), failures_of_minutes AS MATERIALIZED (
    SELECT kind, workspace_id, subject, code, status, minute, sum(number) AS failed,
        coalesce(sum(number) FILTER (WHERE is_final), 0) AS final, min(first_at) AS first_at, max(last_at) AS last_at
    FROM failures GROUP BY kind, workspace_id, subject, code, status, minute
), grouped AS (
    INSERT INTO failure_groups AS kept (kind, workspace_id, subject, code, status, first_seen_at, last_seen_at)
    SELECT kind, workspace_id, subject, code, status, min(first_at), max(last_at)
    FROM failures_of_minutes GROUP BY kind, workspace_id, subject, code, status
    ON CONFLICT (workspace_id, kind, subject, code, status) DO UPDATE SET
        last_seen_at = greatest(kept.last_seen_at, excluded.last_seen_at)
    RETURNING id, kind, workspace_id, subject, code, status
), failed_in_minutes AS (
    INSERT INTO failure_minutes AS kept (group_id, workspace_id, starts_at, failed, final)
    SELECT id, workspace_id, minute, failed, final
    FROM failures_of_minutes JOIN grouped USING (kind, workspace_id, subject, code, status)
    ON CONFLICT (group_id, starts_at) DO UPDATE SET
        failed = kept.failed + excluded.failed, final = kept.final + excluded.final
), failed_in_hours AS (
    INSERT INTO failure_hours AS kept (group_id, workspace_id, starts_at, failed, final)
    SELECT id, workspace_id, date_trunc('hour', minute), sum(failed), sum(final)
    FROM failures_of_minutes JOIN grouped USING (kind, workspace_id, subject, code, status)
    GROUP BY id, workspace_id, date_trunc('hour', minute)
    ON CONFLICT (group_id, starts_at) DO UPDATE SET
        failed = kept.failed + excluded.failed, final = kept.final + excluded.final
)
SELECT coalesce((SELECT sum(number) FROM made), 0) + (SELECT count(*) FROM failures WHERE kind <> 'delivery')
