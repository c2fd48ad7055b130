-- A delivery that waits for its next attempt has the time of it in a column of its own, and no `due_at`: it is no mail,
-- and in no mailbox, until it is woken.
ALTER TABLE deliveries ADD COLUMN next_attempt_at timestamptz;
COMMIT;
UPDATE deliveries SET next_attempt_at = due_at, due_at = NULL
WHERE step > 0 AND due_at > now() AND status = 'pending' AND (leased_until > now()) IS NOT TRUE;
COMMIT;
DROP INDEX deliveries_retries;
CREATE INDEX deliveries_waiting ON deliveries (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
