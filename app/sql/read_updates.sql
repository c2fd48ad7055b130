-- Returns the updates after a place in a stream: their transactions are visible in the snapshot `until` (by default the
-- present one) and not in the snapshot `since`. A workspace and subjects, if given, restrict them. Without any update,
-- returns one row without one. Each row begins with `until`, and whether the place is forgotten: later updates may have
-- been deleted, or the place is of another timeline.
--
-- A transaction is not visible in `since` if it was running then or had not begun. Searching for these two cases
-- separately reads no delivered updates, however long the oldest transaction stays open.
SELECT
    place.until::text,
    -- A mark beyond the present was left by another cluster, whose dump was restored in this one.
    coalesce(
        (
            SELECT pg_snapshot_xmin(place.since) <= forgotten.until FROM updates_forgotten AS forgotten
            WHERE forgotten.until < pg_snapshot_xmax(pg_current_snapshot())
        ), false
    ) OR pg_snapshot_xmax(place.since) > pg_snapshot_xmax(pg_current_snapshot())
        OR pg_snapshot_xmax(place.until) > pg_snapshot_xmax(pg_current_snapshot())
        OR %(timeline)s <> (SELECT cluster_timeline()),
    found.*
FROM (
    SELECT %(since)s::pg_snapshot AS since, coalesce(%(until)s::pg_snapshot, pg_current_snapshot()) AS until
) AS place
LEFT JOIN LATERAL (
    SELECT id, workspace_id, kind, subject_id, actor_id, created_at FROM updates
    WHERE (
            transaction_id >= pg_snapshot_xmax(place.since)
            OR transaction_id = ANY(ARRAY(SELECT pg_snapshot_xip(place.since)))
        )
        AND pg_visible_in_snapshot(transaction_id, place.until)
        AND id > %(last)s
        AND (%(workspace_id)s::text IS NULL OR workspace_id = %(workspace_id)s)
        AND (%(subject_ids)s::text[] IS NULL OR subject_id = ANY(%(subject_ids)s::text[]))
    ORDER BY id LIMIT %(limit)s
) AS found ON true
ORDER BY found.id
