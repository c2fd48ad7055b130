"""The count after a restore: how often each write came to its receiver, before the loss and after the restore."""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.journeys.audit import check_applied, rows
from tests.journeys.load import Accepted
from tests.journeys.shops import Shop
from tests.stack.receiver import Received, Receiver
from tests.stack.signatures import is_genuine
from tests.stack.stack import Stack

_SENT = """
    SELECT job_id, deliveries.id, deliveries.status, attempts, body
    FROM events JOIN deliveries ON event_id = events.id WHERE events.workspace_id = ANY(%s)
"""
_PARTITIONS = """
    SELECT oid::regclass::text, pg_get_expr(relpartbound, oid) FROM pg_class
    WHERE relispartition AND relkind IN ('r', 'p') ORDER BY 1
"""


@dataclass(frozen=True)
class Sent:
    """The delivery of a write's event."""

    delivery_id: str
    status: str
    attempts: int
    body: bytes

    @property
    def is_delivered(self) -> bool:
        return self.status == "delivered"


@dataclass(frozen=True)
class State:
    """What a database has of the shops: their jobs, what was sent of each, and the bounds of its partitions."""

    jobs: set[str]
    sent: Mapping[str, Sent]
    partitions: list[tuple[str, str]]


def read_state(stack: Stack, shops: Sequence[Shop]) -> State:
    workspaces = [shop.workspace_id for shop in shops]
    return State(
        jobs={job_id for (job_id,) in rows(stack, "SELECT id FROM jobs WHERE workspace_id = ANY(%s)", workspaces)},
        sent={
            job_id: Sent(delivery_id, status, attempts, bytes(body))
            for job_id, delivery_id, status, attempts, body in rows(stack, _SENT, workspaces)
        },
        partitions=[(name, bound) for name, bound in rows(stack, _PARTITIONS)],
    )


@dataclass
class Drilled:
    """`before`: the jobs accepted before the backup began; `again`: lost writes, by the jobs that they became.

    States: `restored` is the backup, `lost` the database when it was lost, `end` when all had ended. What was delivered
    before `earliest` was recorded when the backup began; the restored processes started at `restarted_at` (Unix times).
    """

    accepted: Sequence[Accepted]
    before: set[str]
    again: Mapping[str, Accepted]
    restored: State
    lost: State
    end: State
    earliest: float
    restarted_at: float
    flaws: list[str] = field(default_factory=list)

    def settle(self, stack: Stack, receiver: Receiver, shop: Shop) -> dict[str, int]:
        """Counts one shop, and adds what is wrong to `flaws`.

        Of the writes that were kept, those `queued` in the backup are done again: their webhooks may come twice, the
        second time under a `new id`. Those whose delivery was `pending` may come twice under the `same id`. `seen` are
        the writes that are gone but whose webhooks came.
        """
        accepted = [write for write in self.accepted if write.workspace_id == shop.workspace_id]
        kept = [write.job_id for write in accepted if write.job_id in self.restored.jobs]
        gone = {write.job_id for write in accepted} - set(kept)
        again = {id: write for id, write in self.again.items() if write.workspace_id == shop.workspace_id}
        if too_many := gone & self.before:
            self.flaws.append(f"{len(too_many)} accepted before the backup are lost: {sorted(too_many)[:10]}")
        try:
            check_applied(stack, shop, {write.job_id: write for write in accepted if write.job_id not in gone} | again)
        except AssertionError:
            self.flaws.append(f"{shop.hook}: writes were lost, doubled or overtaken\n{traceback.format_exc()}")
        formerly, afterwards = self._arrived(receiver, shop)
        outcomes = [self._outcome(job_id, formerly, afterwards) for job_id in kept]
        for job_id in again:
            self._outcome(job_id, formerly, afterwards)
        return {
            "accepted": len(accepted),
            "before": len(self.before & {write.job_id for write in accepted}),
            "kept": len(kept),
            "queued": sum(job_id not in self.restored.sent for job_id in kept),
            "new id": outcomes.count("new id"),
            "pending": sum(job_id in self.restored.sent and not self._was_delivered(job_id) for job_id in kept),
            "same id": outcomes.count("same id"),
            "gone": len(gone),
            "seen": len(
                [job_id for job_id in gone & self.lost.sent.keys() if self.lost.sent[job_id].delivery_id in formerly]
            ),
            "sent again": len(again),
        }

    def _was_delivered(self, job_id: str) -> bool:
        """Whether the backup knows that it was delivered."""
        return job_id in self.restored.sent and self.restored.sent[job_id].is_delivered

    def _outcome(self, job_id: str, formerly: Mapping[str, list[float]], afterwards: Mapping[str, list[float]]) -> str:
        """`never`, `once`, or twice: under the `same id`, or a `new id`.

        An arrival needs an attempt that was recorded, or one that was under way when the database was lost.
        """
        ended, lost, backed_up = (state.sent.get(job_id) for state in (self.end, self.lost, self.restored))
        if ended is None or not ended.is_delivered:
            self.flaws.append(f"{job_id} was not delivered: {ended}")
            return "never"
        first = formerly.get(lost.delivery_id, []) if lost else []
        second = afterwards.get(ended.delivery_id, [])
        if not first and not second:
            self.flaws.append(f"{job_id} never arrived: {ended}")
        if lost and len(first) > lost.attempts + (not lost.is_delivered):
            self.flaws.append(f"{job_id} came {len(first)} times before the loss: {lost}")
        if len(second) > ended.attempts - (backed_up.attempts if backed_up else 0):
            self.flaws.append(f"{job_id} came {len(second)} times after the restore: {backed_up}, {ended}")
        if not first or not second:
            return "once"
        if self._was_delivered(job_id) or first[-1] < self.earliest:
            self.flaws.append(f"{job_id} came again, though it had been delivered before the backup")
        if lost and lost.delivery_id == ended.delivery_id:
            return "same id"
        if backed_up:
            self.flaws.append(f"{job_id} came again as another delivery, though the backup has one: {backed_up}")
        return "new id"

    def _arrived(self, receiver: Receiver, shop: Shop) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        """When each delivery came, before the restart and after it. Each has its event's bytes and is genuine."""
        bodies = {sent.delivery_id: sent.body for state in (self.lost, self.end) for sent in state.sent.values()}
        formerly: dict[str, list[float]] = defaultdict(list)
        afterwards: dict[str, list[float]] = defaultdict(list)
        for each in [each for each in list(receiver.received) if each.path == shop.hook]:
            if not self._is_sound(each, shop, bodies):
                self.flaws.append(f"{shop.hook}: {each.delivery_id} is unknown, has another body or a false signature")
            (formerly if each.at < self.restarted_at else afterwards)[each.delivery_id].append(each.at)
        return formerly, afterwards

    @staticmethod
    def _is_sound(each: Received, shop: Shop, bodies: Mapping[str, bytes]) -> bool:
        return bodies.get(each.delivery_id) == each.body and is_genuine(shop.secret, each.signature, each.body, each.at)
