-- The lease of a delivery gets a column of its own, which no index contains. A claim then changes no index, as long as
-- the page has room for the new version of the row (a heap-only tuple). The fillfactor reserves that room.
ALTER TABLE deliveries ADD COLUMN leased_until timestamptz;

DO $$
DECLARE piece regclass;
BEGIN
    FOR piece IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'deliveries'::regclass LOOP
        EXECUTE format('ALTER TABLE %s SET (fillfactor = 45)', piece);
    END LOOP;
END $$;
