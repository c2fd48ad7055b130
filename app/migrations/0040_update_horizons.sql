-- Updates are deleted by what was visible an hour ago, not by their age: a transaction may stay open for hours.

-- A row for each minute. `oldest`: the oldest transaction that was running then; `next`: the first that had not begun.
CREATE TABLE update_horizons (
    at timestamptz PRIMARY KEY DEFAULT now(),
    oldest xid8 NOT NULL DEFAULT pg_snapshot_xmin(pg_current_snapshot()),
    next xid8 NOT NULL DEFAULT pg_snapshot_xmax(pg_current_snapshot())
);
INSERT INTO update_horizons DEFAULT VALUES;
