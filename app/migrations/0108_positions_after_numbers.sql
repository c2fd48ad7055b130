-- A transaction has its number before it draws a position. So once all transactions with lower numbers have ended, no
-- row with a lower position can still be committed.

ALTER TABLE jobs ALTER COLUMN position
    SET DEFAULT CASE WHEN pg_current_xact_id() IS NOT NULL THEN nextval('jobs_position') END;
