"""Records the outcomes of sending messages, each under its claim, and the events that follow."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app import logs, metrics, sql
from app.channels.base import Outcome, Verdict
from app.channels.inbound import Blocked
from app.database import count, rows, transaction
from app.domain.channels import arrivals, channels
from app.domain.conversations import message_statuses, messages
from app.domain.conversations.sendings import CONVERSATION_SLACK_SECONDS, Sending, slack_of
from app.domain.deliveries import fan_out
from app.domain.work.events import Recorder
from app.lib import clock, ids, json
from app.logs import tracing
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.runs import Run

if TYPE_CHECKING:
    from app.logs.spans import Spans

# How long a provider may postpone a message before it fails.
PUT_OFF_SECONDS = 86_400.0
# The most time between the ids of a message and of the job that created it: one request makes both.
_APART = timedelta(seconds=10)


def record(sendings: Sequence[Sending]) -> tuple[list[Sending], dict[str, float]]:
    """Records the outcomes of messages. Makes the message that waits behind each finished one due.

    Also records events, pauses throttled channels, marks channels whose credentials were refused, and notes contacts
    who have blocked us.

    Never waits for a row lock. Returns the sendings to record later, because another transaction has locked their
    message or conversation. Also returns, by channel, the seconds until the next of its messages is due. Safe to
    repeat: an outcome counts once, under the claim that it was made with.
    """
    if not sendings:
        return [], {}
    # First, so that no worker claims more of a channel that is throttled, fails or refuses our credentials.
    _pause([each for each in sendings if each.verdict.pauses == "channel"])
    _require_reauthorization([each for each in sendings if each.verdict.outcome is Outcome.UNAUTHORIZED])
    blocked = [each for each in sendings if each.verdict.is_opt_out]
    with transaction():
        free = _lock_conversations({each.conversation_id for each in sendings})
        found = _record([each for each in sendings if each.conversation_id in free])
        statuses = {id: status for id, channel_id, status, _ in found if id and channel_id}
        _note_blocked([each for each in blocked if each.claimed.id in statuses])
        tell([id for id, status in statuses.items() if status in message_statuses.EVENTS])
    _log(sendings, statuses.keys())
    if tracing.spans is not None:
        _trace(tracing.spans, [each for each in sendings if each.at is not None and each.claimed.id in statuses])
    locked = {id for id, channel_id, *_ in found if channel_id is None}
    due: dict[str, float] = {}
    for _, channel_id, _, seconds in found:
        if seconds is not None:
            due[channel_id] = min(seconds, due.get(channel_id, seconds))
    return [each for each in sendings if each.claimed.id in locked or each.conversation_id not in free], due


def tell(sent_ids: Sequence[str]) -> None:
    """Records an event for each of these messages, unless its contact was deleted."""
    if not sent_ids:
        return
    sent = list(Message.select().where(Message.id.in_(sent_ids)))
    wanted = Conversation.id.in_({message.conversation_id for message in sent})
    talks = {each.id: each for each in Conversation.select().where(wanted)}
    # A merge moves a conversation to the other contact at once, but the conversation's messages a little later.
    their_ids = {each.contact_id for each in talks.values()}
    people = {each.id: each for each in Contact.select().where(Contact.id.in_(their_ids))}
    recorders: dict[str, Recorder] = {}
    for message in sorted(sent, key=lambda message: str(message.id)):
        conversation = talks.get(message.conversation_id)
        contact = people.get(conversation.contact_id) if conversation else None
        if contact is not None and conversation is not None:
            recorder = recorders.setdefault(message.workspace_id, Recorder(message.workspace_id))
            messages.tell(recorder, contact, conversation, message)
    for recorder in recorders.values():
        fan_out.write(recorder)


def _pause(throttled: Iterable[Sending]) -> None:
    pauses: dict[str, float] = defaultdict(float)
    for each in throttled:
        pauses[each.claimed.owner] = max(pauses[each.claimed.owner], each.verdict.pause_seconds)
    if pauses:
        count(
            """
            UPDATE channels SET paused_until = greatest(
                CASE WHEN paused_until < now() + interval '1 hour' THEN paused_until END,
                now() + pause.seconds * interval '1 second')
            FROM unnest(%s::text[], %s::float[]) AS pause(id, seconds) WHERE channels.id = pause.id
            """,
            (list(pauses), list(pauses.values())),
        )


def _require_reauthorization(refused: Iterable[Sending]) -> None:
    for channel_id, sending in {each.claimed.owner: each for each in refused}.items():
        problem = {"code": sending.verdict.code, "detail": sending.verdict.detail}
        channels.require_reauthorization(channel_id, problem, sending.credentials)


def _lock_conversations(conversation_ids: Collection[str]) -> set[str]:
    """Locks the conversations that no other transaction has locked. Returns these and deleted ones.

    Queuing a message locks its conversation too. So no message is queued while these locks are held, and the next
    statement sees all that were queued before.
    """
    stored = "SELECT id FROM conversations WHERE id = ANY(%s)"
    locked = rows(f"{stored} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED", (list(conversation_ids),))
    missing = set(conversation_ids) - {id for (id,) in locked}
    return set(conversation_ids) - {id for (id,) in (rows(stored, (list(missing),)) if missing else ())}


def _record(sendings: Sequence[Sending]) -> list[tuple[Any, ...]]:
    if not sendings:
        return []
    verdicts = [each.verdict for each in sendings]
    rates = [each.rate for each in sendings]
    return rows(
        sql.prepared("record_sendings"),
        {
            "ids": sql.array(each.claimed.id for each in sendings),
            "claims": sql.array(each.claimed.claim for each in sendings),
            "statuses": sql.array(message_statuses.OF_OUTCOMES[verdict.outcome] for verdict in verdicts),
            "provider_ids": sql.array(verdict.provider_id for verdict in verdicts),
            "failures": sql.array(_failure(verdict) for verdict in verdicts),
            "put_off_seconds": PUT_OFF_SECONDS,
            "pauses": sql.array(verdict.pause_seconds for verdict in verdicts),
            "ats": sql.array(each.at for each in sendings),
            "rates": sql.array(rate and rate.per_second for rate in rates),
            "slacks": sql.array(rate and slack_of(rate, CONVERSATION_SLACK_SECONDS) for rate in rates),
        },
    )


def _note_blocked(sendings: Iterable[Sending]) -> None:
    """Stores an arrival for each contact who has blocked us, as if the provider had reported it."""
    for each in sendings:
        channel = Channel.get_or_none(Channel.id == each.claimed.owner)
        if channel is not None and each.to is not None:
            key = f"blocked:{each.claimed.id}:{each.claimed.claim}"
            # The contact's identifier may differ from the address that messages are sent to.
            known = rows(_IDENTIFIERS, (each.conversation_id, channel.kind, each.to))
            sender = known[0][0] if known else each.to
            arrivals.store(channel, [Blocked(key, sender, clock.now(), is_blocked=True)])


_IDENTIFIERS = """
    SELECT external_id FROM conversations JOIN identities ON identities.contact_id = conversations.contact_id
    WHERE conversations.id = %s AND channel_kind = %s ORDER BY external_id <> %s, identities.id LIMIT 1
"""


def _failure(verdict: Verdict) -> str | None:
    """Returns the failure as JSON; None if the outcome is none.

    The failure of a message that the provider postpones counts only after PUT_OFF_SECONDS.
    """
    code, detail = verdict.code or "error", verdict.detail
    if verdict.outcome is Outcome.LATER:
        if verdict.code is None:  # Bellhop postponed it, not the provider
            return None
        code, detail = "expired", f"The provider did not take it for a day. {detail or ''}".rstrip()
    elif verdict.outcome not in (Outcome.FAILED, Outcome.UNKNOWN):
        return None
    return json.dumps({"code": code, "detail": detail}).decode()


def _log(sendings: Sequence[Sending], recorded: Collection[str]) -> None:
    lines = []
    for each in sendings:
        if each.claimed.id in recorded:
            claimed, verdict = each.claimed, each.verdict
            metrics.MESSAGES.labels(verdict.outcome.value).inc()
            line = {"message": claimed.id, "channel": claimed.owner, "outcome": verdict.outcome.value}
            lines.append({**line, "code": verdict.code, "pause_seconds": verdict.pause_seconds or None})
    logs.info_each("message.sent", lines)


def _trace(spans: Spans, sent: Sequence[Sending]) -> None:
    """Adds a span for each sent message, whose trace is looked up: messages do not store it."""
    now, causes = time.time(), _causes([each.claimed.id for each in sent])
    for each in sent:
        assert each.at is not None
        claimed, verdict = each.claimed, each.verdict
        root_id, cause_id = causes.get(claimed.id, (claimed.id, None))
        is_fine = verdict.outcome in (Outcome.SENT, Outcome.LATER)
        spans.add(
            "send message",
            "CLIENT",
            tracing.trace_of(root_id),
            tracing.span_of(claimed.id, str(claimed.claim)),
            tracing.span_of(cause_id) if cause_id else None,
            (each.at, now),
            {
                "bellhop.message.id": claimed.id,
                "bellhop.channel.id": claimed.owner,
                "bellhop.message.outcome": verdict.outcome.value,
            },
            None if is_fine else verdict.code or verdict.outcome.value,
        )


def _causes(message_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns, by message, the identifier that names its trace, and the run or job that created it."""
    wanted = Message.id.in_(list(message_ids))
    found = list(Message.select(Message.id, Message.run_id, Message.workspace_id).where(wanted)) if message_ids else []
    roots = Run.root_ids({message.run_id for message in found if message.run_id})
    causes = {message.id: (roots[message.run_id], message.run_id) for message in found if message.run_id in roots}
    others = [message for message in found if not message.run_id]
    near = {
        "ids": [message.id for message in others],
        "workspaces": [message.workspace_id for message in others],
        "firsts": [ids.bound("job", ids.time_of(message.id) - _APART) for message in others],
        "lasts": [ids.bound("job", ids.time_of(message.id) + _APART) for message in others],
    }
    return causes | {id: (trace_id, job_id) for id, trace_id, job_id in (rows(_JOBS, near) if others else ())}


_JOBS = """
    SELECT message.id, job.trace_id, job.id
    FROM unnest(%(ids)s::text[], %(workspaces)s::text[], %(firsts)s::text[], %(lasts)s::text[])
        AS message(id, workspace_id, first, last)
    CROSS JOIN LATERAL (
        SELECT id, trace_id FROM jobs
        WHERE workspace_id = message.workspace_id AND kind = 'messages.create' AND status = 'succeeded'
            AND jobs.id BETWEEN message.first AND message.last AND resource_id = message.id
        LIMIT 1) AS job
"""
