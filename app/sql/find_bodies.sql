-- The bodies of the given events. `first_id` and `last_id` are their lowest and highest identifier.
SELECT id, trace_id, convert_from(body, 'UTF8') FROM events
WHERE id = ANY(%(ids)s) AND id >= %(first_id)s AND id <= %(last_id)s
