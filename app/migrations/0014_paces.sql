-- Endpoints may limit how many deliveries they get in a second, and ask for one at a time in the order of events.

-- `paced_until`: when the next delivery of an endpoint with a limit may be claimed. `head_id`: the delivery of an
-- ordered endpoint that was claimed last.
ALTER TABLE endpoints
    ADD COLUMN max_per_second integer CHECK (max_per_second BETWEEN 1 AND 1000),
    ADD COLUMN paced_until timestamptz,
    ADD COLUMN ordered boolean NOT NULL DEFAULT false,
    ADD COLUMN head_id text COLLATE "C";

-- The first delivery of an endpoint that is not finished, whether it waits or is due, is found without passing over
-- those that have failed, of which there may be many.
DROP INDEX deliveries_undelivered;
CREATE INDEX deliveries_undelivered ON deliveries (endpoint_id, (status = 'pending'), id)
    WHERE status IN ('pending', 'held', 'failed');
