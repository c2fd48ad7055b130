-- Where the deliveries of some endpoints go, and the secrets that they are signed with.
SELECT id, address, secret, CASE WHEN previous_secret_until > now() THEN previous_secret END
FROM endpoints WHERE id = ANY(%(ids)s)
