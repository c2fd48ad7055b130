-- Stores arrivals from a channel, in their order, except those already stored. Returns the senders of the new ones.
INSERT INTO arrivals (id, workspace_id, channel_id, sender_key, key, kind, payload, trace_id)
SELECT new.id, %(workspace_id)s, %(channel_id)s, new.sender_key, new.key, new.kind, new.payload, %(trace_id)s
FROM unnest(%(ids)s::text[], %(senders)s::text[], %(keys)s::text[], %(kinds)s::text[], %(payloads)s::text[]::json[])
    WITH ORDINALITY AS new(id, sender_key, key, kind, payload, number)
ORDER BY new.number
ON CONFLICT (channel_id, key) DO NOTHING
RETURNING sender_key
