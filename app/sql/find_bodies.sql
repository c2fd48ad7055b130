-- The bodies of some events, whose identifiers are from `first_id` to `last_id`.
SELECT id, trace_id, convert_from(body, 'UTF8') FROM events
WHERE id = ANY(%(ids)s) AND id >= %(first_id)s AND id <= %(last_id)s
