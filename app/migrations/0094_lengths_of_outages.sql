-- When the current series of failures of an endpoint began. Meaningless while consecutive_failures is 0.

ALTER TABLE endpoints ADD COLUMN failing_since timestamptz;
