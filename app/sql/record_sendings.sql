-- Records the outcomes of messages, each under the claim it was sent with, and makes the next message of a conversation
-- due whose first one is finished. The caller has locked the conversations, so that no message is queued in them
-- meanwhile.
--
-- `queued`: it was not accepted, and may be sent in `pauses` seconds. With a failure, the provider has postponed it: it
-- fails with that failure once `put_off_seconds` are over. A status that a receipt has already raised stays. `ats` are
-- the Unix times of the claims, null if nothing was sent; conversations that have a rate are paced from then on. A
-- provider's identifier that another message of the channel has is not stored.
--
-- Never waits for a row lock. Returns a row for each recorded outcome: its message and channel, the new status unless
-- something else caused it, and in how many seconds the message is due again, if it is. Also returns a row without a
-- message for each message that is due next, and one without a channel for each outcome to be recorded later. Outcomes
-- whose claim is no longer held have no row.
WITH outcome AS MATERIALIZED (
    SELECT new.id, new.claim, new.provider_id, pause, at, per_second, slack, is_put_off, messages.conversation_id,
        next.id AS next_id,
        CASE WHEN is_put_off AND messages.put_off_at < now() - %(put_off_seconds)s * interval '1 second' THEN 'failed'
            ELSE new.status END AS status, new.failure
    FROM unnest(
        %(ids)s::text[], %(claims)s::int[], %(statuses)s::text[], %(provider_ids)s::text[], %(failures)s::text[],
        %(pauses)s::float[], %(ats)s::float[], %(rates)s::float[], %(slacks)s::float[]
    ) AS new(id, claim, status, provider_id, failure, pause, at, per_second, slack)
    CROSS JOIN LATERAL (SELECT new.status = 'queued' AND new.failure IS NOT NULL AS is_put_off) AS judged
    JOIN messages ON messages.id = new.id AND messages.claim = new.claim AND messages.id = ANY(%(ids)s)
    LEFT JOIN LATERAL (
        SELECT id FROM messages AS behind
        WHERE behind.conversation_id = messages.conversation_id AND behind.is_behind ORDER BY created_at, id LIMIT 1
    ) AS next ON true
    WHERE messages.leased_until IS NOT NULL AND messages.due_at IS NOT NULL
), locked AS MATERIALIZED (
    SELECT id FROM messages
    WHERE id = ANY(ARRAY(SELECT id FROM outcome UNION ALL SELECT next_id FROM outcome WHERE next_id IS NOT NULL))
        AND (is_behind OR leased_until IS NOT NULL)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), ready AS MATERIALIZED (
    SELECT outcome.*, CASE WHEN per_second IS NULL OR at IS NULL OR outcome.status = 'queued' THEN talk.paced_until
        ELSE greatest(talk.paced_until, to_timestamp(at) - slack * interval '1 second')
            + interval '1 second' / per_second END AS paced_until
    FROM outcome
    LEFT JOIN LATERAL (SELECT paced_until FROM conversations WHERE id = conversation_id LIMIT 1) AS talk ON true
    WHERE (outcome.id IN (SELECT id FROM locked)) IS TRUE
        AND (next_id IS NULL OR next_id IN (SELECT id FROM locked))
), recorded AS (
    UPDATE messages
    SET status = CASE messages.status WHEN 'sending' THEN ready.status ELSE messages.status END,
        failure = CASE WHEN messages.status <> 'sending' THEN messages.failure
            WHEN ready.status <> 'queued' THEN ready.failure::json END,
        put_off_at = CASE WHEN is_put_off THEN coalesce(messages.put_off_at, now()) ELSE messages.put_off_at END,
        provider_id = CASE WHEN messages.provider_id IS NOT NULL OR EXISTS (
            SELECT FROM messages AS other
            WHERE other.channel_id = messages.channel_id AND other.provider_id = ready.provider_id
        ) THEN messages.provider_id ELSE ready.provider_id END,
        due_at = CASE WHEN messages.status = 'sending' AND ready.status = 'queued'
            THEN now() + ready.pause * interval '1 second' END,
        leased_until = NULL
    FROM ready
    WHERE messages.id = ready.id AND messages.claim = ready.claim AND messages.leased_until IS NOT NULL
    RETURNING messages.id, messages.channel_id, messages.status, messages.due_at, ready.status AS outcome, ready.conversation_id,
        ready.next_id, ready.paced_until
), promoted AS (
    UPDATE messages SET is_behind = false, due_at = greatest(now(), recorded.paced_until)
    FROM recorded WHERE recorded.due_at IS NULL AND messages.id = recorded.next_id
    RETURNING messages.channel_id, messages.due_at
), paced AS (
    UPDATE conversations SET paced_until = recorded.paced_until FROM recorded
    WHERE conversations.id = recorded.conversation_id
        AND conversations.paced_until IS DISTINCT FROM recorded.paced_until
)
SELECT id, channel_id, CASE status WHEN outcome THEN status END AS status,
    extract(epoch FROM due_at - now())::float AS seconds
FROM recorded
UNION ALL SELECT NULL, channel_id, NULL, extract(epoch FROM due_at - now())::float FROM promoted
UNION ALL SELECT id, NULL, NULL, NULL FROM outcome WHERE (id IN (SELECT id FROM recorded)) IS NOT TRUE
