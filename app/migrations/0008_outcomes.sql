-- What came of attempts: probing of endpoints that keep failing, and codes beside the sentences of errors.

-- When the next probe may go out; while one is under way, the end of its lease. Null: the endpoint is not probed.
ALTER TABLE endpoints ADD COLUMN probe_at timestamptz;
-- Probing limits what an endpoint that does not answer gets, so nothing reads this any more.
ALTER TABLE endpoints DROP COLUMN answered;

-- Attempts on the present schedule of retries: resending starts it anew, and `attempts` goes on counting.
ALTER TABLE deliveries RENAME COLUMN step TO tries;

ALTER TABLE attempts ADD COLUMN error_code text;
-- Of the last attempt. `last_error` and its code may be a fault of our own, which is no attempt.
ALTER TABLE deliveries ADD COLUMN last_error_code text, ADD COLUMN last_status integer;
COMMIT;

-- Erasing a contact needs the code of redirects, whose sentences may repeat its data.
UPDATE attempts SET error_code = CASE WHEN status = 410 THEN 'gone' WHEN status BETWEEN 300 AND 399 THEN 'redirect'
    ELSE 'status' END
WHERE error IS NOT NULL AND status IS NOT NULL;
COMMIT;
UPDATE deliveries SET last_error_code = attempts.error_code, last_status = attempts.status
FROM attempts
WHERE attempts.delivery_id = deliveries.id AND attempts.number = deliveries.attempts
    AND deliveries.last_error IS NOT NULL AND attempts.error_code IS NOT NULL;

-- Deliveries that succeed have no entry in these. Those with a status of 2xx are found in the order of the page.
CREATE INDEX deliveries_error_code_page ON deliveries (workspace_id, last_error_code, id)
    WHERE last_error_code IS NOT NULL;
CREATE INDEX deliveries_status_code_page ON deliveries (workspace_id, last_status, id)
    WHERE last_error_code IS NOT NULL;
