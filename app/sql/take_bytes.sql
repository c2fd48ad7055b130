-- Adds bytes to the count of each key. Returns the counts, and in how many seconds each ends. A count whose hour is
-- over starts anew.
INSERT INTO stored_bytes (key, bytes, ends_at)
SELECT key, %(bytes)s, now() + interval '1 hour' FROM unnest(%(keys)s::bytea[]) AS taken(key)
ON CONFLICT (key) DO UPDATE SET
    bytes = CASE WHEN stored_bytes.ends_at > now() THEN stored_bytes.bytes ELSE 0 END + excluded.bytes,
    ends_at = CASE WHEN stored_bytes.ends_at > now() THEN stored_bytes.ends_at ELSE excluded.ends_at END
RETURNING key, bytes, extract(epoch FROM ends_at - now())::float
