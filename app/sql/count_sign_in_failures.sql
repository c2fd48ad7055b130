-- Counts an attempt to sign in under each key, and returns the counts. A count whose span is over starts anew.
INSERT INTO sign_in_failures (key, failures, ends_at)
SELECT key, 1, ends_at FROM unnest(%(keys)s::bytea[], %(ends)s::timestamptz[]) AS counted(key, ends_at)
ON CONFLICT (key) DO UPDATE SET
    failures = CASE WHEN sign_in_failures.ends_at > %(now)s THEN sign_in_failures.failures + 1 ELSE 1 END,
    ends_at = CASE WHEN sign_in_failures.ends_at > %(now)s THEN sign_in_failures.ends_at ELSE excluded.ends_at END
RETURNING key, failures, ends_at
