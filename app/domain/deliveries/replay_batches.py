"""Batches of replays: each sends some of a replay's deliveries, and records their outcomes.

A batch is one transaction of bounded size. It writes the deliveries that it sends, a row for each delivery that it
reached, and the replay's progress. The sum of the replay's `sent` and `skipped` is also its position.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from app import mailbox
from app.database import count, rows, transaction
from app.domain.deliveries import lanes, resends
from app.domain.deliveries.replay_choices import PART
from app.domain.deliveries.replays import MAIL
from app.domain.deliveries.resends import Resent
from app.domain.work import paces
from app.mailbox import Claimed
from app.models.replays import Replay

log = structlog.get_logger(__name__)

# A batch examines at least this many deliveries, even if it may send fewer: skipping does not count towards the limit.
LEAST_LOOKED_AT = 50
# The pause while another transaction has locked the next delivery.
PAUSE_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A locked delivery. `claim`: its current claim number."""

    id: str
    status: str
    claim: int
    event_id: str
    endpoint_id: str
    is_in_progress: bool


@dataclass(frozen=True, slots=True)
class _Row:
    """The outcome for a delivery: sent if `reason` is None, otherwise skipped for that reason."""

    delivery_id: str
    status: str = ""
    endpoint_id: str = ""
    reason: str | None = None


def work(replay_id: str) -> None:
    """Continues the replay until it ends, has to wait, or the time slice is over."""
    mailbox.serve(MAIL, replay_id, 1, _go_on)


def _go_on(claimed: Sequence[Claimed]) -> None:
    """Does one batch of the replay, atomically."""
    with transaction():
        if not mailbox.holding(MAIL, claimed):
            log.warning("replay.not_held", replay=claimed[0].id)
            return
        replay = Replay.get_by_id(claimed[0].id)
        room = 1 if replay.state == "canary" else paces.allowed(replay.per_second, replay.paced_until, PART)
        batch = _next(replay, room) if room else []
        sent_as = _send(batch)
        _save_rows(replay, batch, sent_as)
        _save(replay, len(sent_as), len(batch) - len(sent_as))
    if sent_as:
        lanes.ring({row.endpoint_id for row in batch if row.reason is None})
    if replay.sent + replay.skipped + len(batch) == replay.count:
        log.info("replay.finished", request_id=replay.trace_id, replay=replay.id, count=replay.count)
    elif room and not batch:
        time.sleep(PAUSE_SECONDS)


def _next(replay: Replay, room: int) -> list[_Row]:
    """Locks the next deliveries, up to the first one that is locked or exceeds `room`.

    Never waits for a lock: senders lock several deliveries in another order, so waiting could deadlock.
    """
    part, place = divmod(replay.sent + replay.skipped, PART)
    look_at = max(room, LEAST_LOOKED_AT)
    [(ids, claims)] = rows(
        "SELECT delivery_ids[%(first)s:%(last)s], claims[%(first)s:%(last)s] FROM replay_parts"
        " WHERE replay_id = %(id)s AND number = %(part)s",
        {"first": place + 1, "last": place + look_at, "id": replay.id, "part": part},
    )
    locked = _lock(ids)
    gone = set(ids) - locked.keys()
    if gone:
        gone -= {id for (id,) in rows("SELECT id FROM deliveries WHERE id = ANY(%s)", (list(gone),))}
    judge = _Judge(list(locked.values()))
    batch: list[_Row] = []
    for delivery_id, claim in zip(ids, claims, strict=True):
        if delivery_id in gone:
            batch.append(_Row(delivery_id, reason="expired"))
        elif (delivery := locked.get(delivery_id)) is None:
            break
        else:
            row = _Row(delivery_id, delivery.status, delivery.endpoint_id, judge.reason(delivery, claim))
            room -= row.reason is None
            if room < 0:
                break
            batch.append(row)
    return batch


def _lock(delivery_ids: Sequence[str]) -> dict[str, _Chosen]:
    """Locks the deliveries that no other transaction has locked."""
    found = rows(
        """
        SELECT id, status, claim, event_id, endpoint_id, (leased_until > clock_timestamp()) IS TRUE
            OR (status = 'pending' AND next_attempt_at IS NULL)
        FROM deliveries WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
        """,
        (list(delivery_ids),),
    )
    return {row[0]: _Chosen(*row) for row in found}


class _Judge:
    """Decides whether deliveries can be sent."""

    def __init__(self, deliveries: Sequence[_Chosen]) -> None:
        # Reads the endpoints without locks: senders lock endpoints before deliveries. If an endpoint stops at this
        # moment, the following sweep holds what is sent here.
        owners = list({each.endpoint_id for each in deliveries})
        self._states: Mapping[str, str] = dict(rows("SELECT id, state FROM endpoints WHERE id = ANY(%s)", (owners,)))
        self._kept = resends.with_bodies({each.event_id for each in deliveries})

    def reason(self, delivery: _Chosen, claim: int) -> str | None:
        """Returns why the delivery cannot be sent, as a key of REASONS; None if it can.

        `claim`: the delivery's claim number when the replay chose it.
        """
        if delivery.status == "delivered" and delivery.claim != claim:
            return "delivered"
        state = self._states.get(delivery.endpoint_id, "deleted")
        if state != "active":
            return f"endpoint_{state}"
        if delivery.is_in_progress:
            return "in_progress"
        if delivery.claim != claim:
            return "sent_meanwhile"
        return None if delivery.event_id in self._kept else "body_gone"


def _send(batch: Sequence[_Row]) -> dict[str, str]:
    """Sends the rows without a reason; maps them to the identifiers that they are sent under."""
    sent = [Resent(row.delivery_id, row.status) for row in batch if row.reason is None]
    return dict(zip([each.id for each in sent], resends.send_again(sent), strict=True))


def _save_rows(replay: Replay, batch: Sequence[_Row], sent_as: Mapping[str, str]) -> None:
    if batch:
        count(
            """
            INSERT INTO replay_rows (workspace_id, replay_id, number, delivery_id, outcome, reason, sent_as)
            SELECT %s, %s, %s + place, id, CASE WHEN sent_as IS NULL THEN 'skipped' ELSE 'sent' END, reason, sent_as
            FROM unnest(%s::text[], %s::text[], %s::text[]) WITH ORDINALITY AS made(id, reason, sent_as, place)
            """,
            (
                *(replay.workspace_id, replay.id, replay.sent + replay.skipped, [row.delivery_id for row in batch]),
                *([row.reason for row in batch], [sent_as.get(row.delivery_id) for row in batch]),
            ),
        )


def _save(replay: Replay, sent: int, skipped: int) -> None:
    """Records progress. Ends the replay, or makes it wait after its canary or for its rate limit."""
    done = replay.sent + replay.skipped + sent + skipped
    values: dict[str, Any] = {"id": replay.id, "sent": sent, "skipped": skipped, "catch_up": paces.CATCH_UP_SECONDS}
    values |= {"is_last": done == replay.count, "waits": replay.state == "canary" and sent > 0}
    count(
        """
        WITH paced AS (
            SELECT CASE WHEN per_second IS NULL OR %(sent)s = 0 THEN paced_until
                ELSE greatest(coalesce(paced_until, now()), now() - %(catch_up)s * interval '1 second')
                    + %(sent)s * interval '1 second' / per_second END AS until
            FROM replays WHERE id = %(id)s
        )
        UPDATE replays
        SET sent = sent + %(sent)s, skipped = skipped + %(skipped)s, paced_until = paced.until, leased_until = NULL,
            state = CASE WHEN %(is_last)s THEN 'done' ELSE state END,
            finished_at = CASE WHEN %(is_last)s THEN clock_timestamp() END,
            due_at = CASE WHEN NOT (%(is_last)s OR %(waits)s OR (paced.until > now()) IS TRUE) THEN due_at END,
            wakes_at = CASE WHEN NOT (%(is_last)s OR %(waits)s) AND paced.until > now() THEN paced.until END
        FROM paced WHERE id = %(id)s
        """,
        values,
    )
    finished = done // PART if done < replay.count else done // PART + 1
    count("DELETE FROM replay_parts WHERE replay_id = %s AND number < %s", (replay.id, finished))
