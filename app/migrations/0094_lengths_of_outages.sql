-- When the first of the consecutive failures of an endpoint was. Says nothing while there are none.

ALTER TABLE endpoints ADD COLUMN failing_since timestamptz;
