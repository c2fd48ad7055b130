-- Records the oldest running transaction and the next one, once a minute, and deletes records no longer needed. Returns
-- how many seconds the oldest transaction in any database of the cluster has run. This is exact to a minute: it counts
-- from the first record after the transaction began.
WITH present AS MATERIALIZED (
    SELECT pg_snapshot_xmin(pg_current_snapshot()) AS oldest, pg_snapshot_xmax(pg_current_snapshot()) AS next
), noted AS (
    INSERT INTO update_horizons (at, oldest, next)
    SELECT now(), oldest, next FROM present
    WHERE NOT EXISTS (SELECT 1 FROM update_horizons WHERE at > now() - interval '59 seconds')
    ON CONFLICT DO NOTHING
), dropped AS (
    DELETE FROM update_horizons USING present
    WHERE update_horizons.next <= present.oldest AND at < (
        SELECT at FROM update_horizons AS kept
        WHERE at <= now() - %(kept)s AND kept.oldest <= present.oldest
        ORDER BY at DESC LIMIT 1
    ) OR update_horizons.next > present.next  -- of another cluster, whose dump was restored in this one
)
SELECT coalesce(extract(epoch FROM now() - min(at)), 0)
FROM present JOIN update_horizons ON update_horizons.next > present.oldest AND update_horizons.next <= present.next
WHERE present.oldest < present.next
