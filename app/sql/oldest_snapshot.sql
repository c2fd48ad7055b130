-- For how many seconds dead rows have been kept for somebody: a backend with a snapshot, even if it only reads, a standby
-- that says what it reads, a slot, or a prepared transaction, in any database of the cluster. PostgreSQL shows backends
-- of other users only to members of pg_read_all_stats. Autovacuum's own snapshots keep nothing.
--
-- Of slots and standbys only the transaction is known from which on they need rows: that was given out before the first
-- note of `update_horizons` that knows of it.
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
