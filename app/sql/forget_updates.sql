-- Deletes the updates of transactions that had ended an hour ago: every place of the last hour has passed them. Leaves a
-- mark in the same statement, so that a reader finds either all of these updates or the mark.
WITH horizon AS MATERIALIZED (
    -- A horizon beyond the present was written by another cluster, whose dump was restored in this one.
    SELECT oldest FROM update_horizons
    WHERE at <= now() - %(kept)s AND oldest <= pg_snapshot_xmin(pg_current_snapshot())
    ORDER BY at DESC LIMIT 1
), old AS MATERIALIZED (
    (
        SELECT ctid, transaction_id FROM updates WHERE transaction_id < (SELECT oldest FROM horizon)
        ORDER BY transaction_id LIMIT %(limit)s
    ) UNION ALL (
        SELECT ctid, NULL::xid8 FROM updates WHERE transaction_id >= pg_snapshot_xmax(pg_current_snapshot()) LIMIT %(limit)s
    )
), marked AS (
    INSERT INTO updates_forgotten AS mark (until)
    SELECT transaction_id FROM old WHERE transaction_id IS NOT NULL ORDER BY transaction_id DESC LIMIT 1
    ON CONFLICT (is_only) DO UPDATE SET until = CASE
        WHEN mark.until < pg_snapshot_xmax(pg_current_snapshot()) THEN greatest(mark.until, excluded.until)
        ELSE excluded.until
    END
)
DELETE FROM updates WHERE ctid = ANY(ARRAY(SELECT ctid FROM old))
