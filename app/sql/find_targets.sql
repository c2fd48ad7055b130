-- The addresses of some endpoints, and the secrets that sign their deliveries.
SELECT id, address, secret, CASE WHEN previous_secret_until > now() THEN previous_secret END
FROM endpoints WHERE id = ANY(%(ids)s)
