-- Takes the lease if it is free or expired, or renews our own. Returns its epoch, or no row if another process has it.
INSERT INTO leases (name, holder, epoch, expires_at)
VALUES (%(name)s, %(holder)s, 1, now() + %(seconds)s * interval '1 second')
ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, expires_at = excluded.expires_at,
    epoch = leases.epoch + CASE WHEN leases.holder = excluded.holder THEN 0 ELSE 1 END
WHERE leases.holder = excluded.holder OR leases.expires_at < now()
RETURNING epoch
