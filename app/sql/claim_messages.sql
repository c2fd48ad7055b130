-- Claims due messages of connected channels: messages by people first, those of broadcasts last. Claims up to the room
-- of each channel, and no more than its rate allows now. Only the first unfinished message of a conversation is due.
-- `starts` are the marks of the channels (`marks.py`).
--
-- `kinds` are the kinds of channels that have a rate: `rates` messages per second in the long run, with at most
-- `slacks` seconds caught up. The lock on the row of such a channel makes its rate exact across all processes. Never
-- waits for a lock.
--
-- Returns a row for each claim: what a message needs to be sent; the Unix time of the claim; and whether the message
-- may have been sent before, because a lease on it has ended or a receipt for it has arrived. Also returns a row for
-- each channel, without a claim: in how many seconds to check it again, null if only a bell can change anything; and
-- whether nothing can be sent before, because of its pause or its rate. A pause that ends more than an hour from now is
-- ignored: it comes from a wrong clock.
WITH seen AS MATERIALIZED (
    SELECT channels.id, room, paced_until, CASE WHEN paused_until < now() + interval '1 hour' THEN paused_until END AS paused_until,
        per_second, slack, timestamptz 'epoch' + greatest(start, 0) * interval '1 microsecond' AS mark
    FROM unnest(%(ids)s::text[], %(rooms)s::int[], %(starts)s::bigint[]) AS box(id, room, start)
    JOIN channels USING (id)
    LEFT JOIN unnest(%(kinds)s::text[], %(rates)s::float[], %(slacks)s::float[]) AS rate(kind, per_second, slack)
        ON rate.kind = channels.kind
    WHERE channels.id = ANY(%(ids)s) AND state = 'connected' AND deleted_at IS NULL
), locked AS MATERIALIZED (
    SELECT id, paced_until FROM channels
    WHERE id = ANY(ARRAY(SELECT id FROM seen WHERE per_second IS NOT NULL)) AND state = 'connected'
        AND (paused_until BETWEEN now() AND now() + interval '1 hour') IS NOT TRUE AND (paced_until > now()) IS NOT TRUE
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), allowed AS MATERIALIZED (
    SELECT seen.id, mark, least(room, pace) AS number, pace, paced_from, per_second
    FROM seen LEFT JOIN locked USING (id)
    CROSS JOIN LATERAL (
        SELECT greatest(locked.paced_until, now() - slack * interval '1 second') AS paced_from) AS since
    CROSS JOIN LATERAL (SELECT floor(extract(epoch FROM now() - paced_from) * per_second)::int + 1 AS pace) AS paced
    WHERE CASE WHEN per_second IS NULL THEN (paused_until > now()) IS NOT TRUE ELSE locked.id IS NOT NULL END
), due AS MATERIALIZED (
    -- The three are read in this order, and only until there are enough. Each has an index.
    SELECT found.* FROM allowed CROSS JOIN LATERAL (
        SELECT * FROM (
            SELECT id, channel_id, status, due_at, leased_until FROM messages
            WHERE channel_id = allowed.id AND NOT is_automated
                AND due_at >= mark AND due_at <= now() AND (leased_until > now()) IS NOT TRUE
            ORDER BY channel_id, due_at LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED) AS of_people
        UNION ALL
        SELECT * FROM (
            SELECT id, channel_id, status, due_at, leased_until FROM messages
            WHERE channel_id = allowed.id AND is_automated AND broadcast_id IS NULL
                AND due_at >= mark AND due_at <= now() AND (leased_until > now()) IS NOT TRUE
            ORDER BY channel_id, due_at LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED) AS of_automations
        UNION ALL
        SELECT * FROM (
            SELECT id, channel_id, status, due_at, leased_until FROM messages
            WHERE channel_id = allowed.id AND broadcast_id IS NOT NULL
                AND due_at >= mark AND due_at <= now() AND (leased_until > now()) IS NOT TRUE
            ORDER BY channel_id, due_at LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED) AS of_broadcasts
        LIMIT allowed.number
    ) AS found
), claimed AS (
    UPDATE messages
    SET status = CASE messages.status WHEN 'queued' THEN 'sending' ELSE messages.status END, claim = claim + 1,
        leased_until = now() + %(lease_seconds)s * interval '1 second'
    FROM due WHERE messages.id = due.id AND messages.id = ANY(ARRAY(SELECT id FROM due))
    RETURNING messages.id, messages.channel_id, claim, conversation_id, text, template, attachments, buttons,
        due.leased_until IS NOT NULL OR due.status <> 'queued' AS is_suspect, author->>'type' AS author,
        coalesce(messages.expires_at <= now(), false) AS is_expired
), taken AS (
    SELECT id, claims, paced_from + claims * interval '1 second' / per_second AS next_at FROM allowed
    JOIN (SELECT channel_id AS id, count(*) AS claims FROM due GROUP BY channel_id) AS counted USING (id)
), paced AS (
    UPDATE channels SET paced_until = next_at FROM taken
    WHERE channels.id = taken.id AND channels.id = ANY(%(ids)s) AND next_at IS NOT NULL
)
SELECT claimed.id, channel_id, claim, extract(epoch FROM now())::float AS at, is_suspect, conversation_id, text,
    template, attachments, buttons, talk.peer, coalesce(talk.window_ends_at > now(), false) AS is_open, contact.opted_out,
    coalesce(author = 'member' AND talk.asked_at > now() - %(answer_seconds)s * interval '1 second', false) AS is_answer,
    is_expired, NULL::float AS seconds, NULL::boolean AS is_closed
FROM claimed
LEFT JOIN LATERAL (
    SELECT peer, window_ends_at, asked_at, contact_id FROM conversations WHERE id = conversation_id LIMIT 1) AS talk ON true
LEFT JOIN LATERAL (SELECT opted_out FROM contacts WHERE id = talk.contact_id LIMIT 1) AS contact ON true
UNION ALL
SELECT NULL, seen.id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    extract(epoch FROM CASE
        WHEN seen.paused_until > now() THEN seen.paused_until - now()
        WHEN seen.per_second IS NOT NULL AND seen.paced_until > now() THEN seen.paced_until - now()
        WHEN allowed.id IS NULL THEN interval '0.02 seconds'  -- another process claims from it
        WHEN claims = pace THEN next_at - now()
        WHEN claims = number THEN interval '0'
        ELSE (SELECT due_at - now() FROM messages WHERE channel_id = seen.id AND due_at > now() ORDER BY due_at LIMIT 1)
    END)::float,
    allowed.id IS NULL OR coalesce(claims = pace, false)
FROM seen LEFT JOIN allowed USING (id) LEFT JOIN taken USING (id)
