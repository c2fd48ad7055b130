-- The updates after a place in a stream: those of transactions that are visible in the snapshot `until` (by default the
-- present one) and not in the snapshot `since`. One row without an update if there is none.
SELECT
    place.until::text,
    coalesce(
        (SELECT pg_snapshot_xmin(place.since) <= forgotten.until FROM updates_forgotten AS forgotten), false
    ) OR pg_snapshot_xmax(place.since) > pg_snapshot_xmax(pg_current_snapshot())
        OR pg_snapshot_xmax(place.until) > pg_snapshot_xmax(pg_current_snapshot()),
    found.*
FROM (
    SELECT %(since)s::pg_snapshot AS since, coalesce(%(until)s::pg_snapshot, pg_current_snapshot()) AS until
) AS place
LEFT JOIN LATERAL (
    SELECT id, workspace_id, kind, subject_id, actor_id, created_at FROM updates
    WHERE transaction_id >= pg_snapshot_xmin(place.since)
        AND NOT pg_visible_in_snapshot(transaction_id, place.since)
        AND pg_visible_in_snapshot(transaction_id, place.until)
        AND id > %(last)s
        AND (%(workspace_id)s::text IS NULL OR workspace_id = %(workspace_id)s)
    ORDER BY id LIMIT %(limit)s
) AS found ON true
ORDER BY found.id
