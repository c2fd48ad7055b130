-- How many seconds the oldest holder has kept dead rows from being removed: a backend with a snapshot (even one that
-- only reads), a standby with feedback, a replication slot or a prepared transaction, in any database of the cluster.
-- PostgreSQL shows backends of other users only to members of pg_read_all_stats. Autovacuum's own snapshots hold
-- nothing back.
--
-- For slots and standbys, only the oldest transaction that they need is known. It began before the first note in
-- `update_horizons` with a later transaction.
SELECT coalesce(max(greatest(seconds, 0)), 0) FROM (
    SELECT extract(epoch FROM now() - xact_start) AS seconds FROM pg_stat_activity
    WHERE (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND pid <> pg_backend_pid()
        AND backend_type <> 'autovacuum worker'
    UNION ALL
    SELECT extract(epoch FROM now() - prepared) FROM pg_prepared_xacts
    UNION ALL
    SELECT extract(epoch FROM now() - (SELECT min(at) FROM update_horizons WHERE next::text::bigint > needed))
    FROM (
        SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint - age(kept) AS needed FROM (
            SELECT xmin AS kept FROM pg_replication_slots
            UNION ALL SELECT catalog_xmin FROM pg_replication_slots
            UNION ALL SELECT backend_xmin FROM pg_stat_activity WHERE xact_start IS NULL
        ) AS transactions WHERE kept IS NOT NULL
    ) AS needs
) AS holders
