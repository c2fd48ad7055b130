"""The attempt log compared with what arrived: no attempt is missing, and none was repeated without a reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.journeys.audit import rows
from tests.journeys.shops import Shop
from tests.stack.receiver import Received, Receiver
from tests.stack.stack import Stack

# How far an arrival may be from the logged time of its attempt, on a busy machine.
SLACK_SECONDS = 0.5


@dataclass(frozen=True)
class Log:
    """A delivery and its logged attempts, in order; times are Unix times. It is the same however often claimed."""

    delivery_id: str
    endpoint_id: str
    status: str
    claim: int = field(compare=False)
    attempts: int
    numbers: Sequence[int]
    began: Sequence[float]
    ended: Sequence[float]
    errors: Sequence[str | None]

    @property
    def flaw(self) -> str | None:
        """What is wrong with the log; None if it is consistent."""
        if list(self.numbers) != list(range(1, self.attempts + 1)):
            return f"{self.attempts} attempts are logged as {self.numbers}"
        if None in self.errors[:-1]:
            return f"it went on after a success: {self.errors}"
        # A delivery cancelled during an attempt stays cancelled.
        if self.status != "cancelled" and (self.status == "delivered") != (self.errors[-1:] == [None]):
            return f"it is {self.status}, and its last attempt says {self.errors[-1:]}"
        return None


def logs(stack: Stack, shops: Sequence[Shop]) -> list[Log]:
    """The logs of all deliveries in the shops' workspaces, oldest first."""
    query = """
        SELECT deliveries.id, endpoint_id, deliveries.status, claim, attempts,
            coalesce(array_agg(number ORDER BY number) FILTER (WHERE number IS NOT NULL), '{}'),
            coalesce(array_agg(extract(epoch FROM at)::float ORDER BY number) FILTER (WHERE number IS NOT NULL), '{}'),
            coalesce(array_agg((extract(epoch FROM at) + duration_ms / 1000.0)::float ORDER BY number)
                FILTER (WHERE number IS NOT NULL), '{}'),
            coalesce(array_agg(error ORDER BY number) FILTER (WHERE number IS NOT NULL), '{}')
        FROM deliveries LEFT JOIN attempts ON delivery_id = deliveries.id
        WHERE deliveries.workspace_id = ANY(%s) GROUP BY deliveries.id ORDER BY deliveries.id
    """
    return [Log(*row) for row in rows(stack, query, [shop.workspace_id for shop in shops])]


def check_logs(stack: Stack, shops: Sequence[Shop]) -> list[Log]:
    """Asserts that attempts are numbered from 1 without gaps, and succeed only at the end. Returns the logs."""
    found = logs(stack, shops)
    assert [(log.delivery_id, log.flaw) for log in found if log.flaw] == []
    return found


def unlogged(found: Sequence[Log], receiver: Receiver, late_seconds: float = SLACK_SECONDS) -> list[Received]:
    """The arrivals of these deliveries without a logged attempt: their worker died before recording them.

    `late_seconds`: how long after the end of its attempt a request may arrive, if the receiver is behind.
    """
    arrived: dict[str, list[Received]] = defaultdict(list)
    for each in list(receiver.received):
        arrived[each.delivery_id].append(each)
    return [each for log in found for each in _beside(log, arrived[log.delivery_id], late_seconds)]


def too_often(arrived: Counter[str], found: Sequence[Log], before: Mapping[str, int]) -> list[str]:
    """The deliveries that arrived more often than they were tried since they had the attempts of `before`.

    On a busy machine a receiver may answer too late, and then gets the delivery again by the schedule of retries.
    """
    tries = {log.delivery_id: log.attempts - before.get(log.delivery_id, 0) for log in found}
    return [delivery_id for delivery_id, times in arrived.items() if times > tries[delivery_id]]


def _beside(log: Log, arrived: Sequence[Received], late_seconds: float) -> list[Received]:
    free = list(zip(log.began, log.ended, strict=True))
    beside = []
    for each in arrived:
        within = [span for span in free if span[0] - SLACK_SECONDS <= each.at <= span[1] + late_seconds]
        if within:
            free.remove(min(within, key=lambda span, at=each.at: abs(at - span[0])))
        else:
            beside.append(each)
    return beside
