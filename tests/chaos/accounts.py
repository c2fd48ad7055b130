"""The account after the long run: every write, delivery and attempt, and a reason for each repeated one."""

from __future__ import annotations

import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.chaos.troubles import SENDERS, Trouble
from tests.chaos.wishes import Wish
from tests.journeys.attempts import Log, logs, unlogged
from tests.journeys.audit import check_applied, rows
from tests.journeys.faults import names
from tests.journeys.load import Load
from tests.journeys.logs import lines
from tests.journeys.shops import Shop
from tests.stack.receiver import Received, Receiver
from tests.stack.signatures import is_genuine
from tests.stack.stack import Stack

# How late a request may arrive if the receiver is behind, since it shares a process with the load.
LATE_SECONDS = 3.0
KILLED = "its worker was killed"


@dataclass
class Account:
    """`given_up`: shops whose endpoint was deleted at the end; `lease_seconds`: the lease of a delivery."""

    stack: Stack
    receiver: Receiver
    load: Load
    troubles: Sequence[Trouble]
    wishes: Sequence[Wish]
    given_up: Sequence[Shop]
    lease_seconds: float
    flaws: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._stale = {
            line["delivery"]
            for name in names(self.stack, *SENDERS)
            for line in lines(self.stack, name)
            if line["event"] == "delivery.attempt" and line["status"] == "stale"
        }

    def settle(self, shop: Shop) -> dict[str, int]:
        """Counts one shop, and adds what is wrong to `flaws`."""
        accepted = {write.job_id: write for write in self.load.accepted if write.workspace_id == shop.workspace_id}
        try:
            crossed = check_applied(self.stack, shop, accepted)
        except AssertionError:
            crossed = -1
            self.flaws.append(f"{shop.hook}: writes were lost, doubled or overtaken\n{traceback.format_exc()}")
        found = logs(self.stack, [shop])
        self.flaws += [f"{shop.hook}: {log.delivery_id}: {log.flaw}" for log in found if log.flaw]
        repeated = unlogged(found, self.receiver, LATE_SECONDS)
        self._check_repeated(found, repeated)
        self._check_arrived(shop, found)
        statuses = Counter(log.status for log in found)
        ended = {"delivered"} if shop not in self.given_up else {"delivered", "failed", "cancelled"}
        if lost := [log.delivery_id for log in found if log.status not in ended]:
            self.flaws.append(f"{shop.hook}: {len(lost)} deliveries have not ended well: {lost[:10]}")
        return {
            "accepted": len(accepted),
            "events": self._events(shop, found),
            "crossed": crossed,
            "deliveries": len(found),
            "delivered": statuses["delivered"],
            "failed": statuses["failed"],
            "cancelled": statuses["cancelled"],
            "attempts": sum(log.attempts for log in found),
            "repeated": len(repeated),
        }

    def _events(self, shop: Shop, found: Sequence[Log]) -> int:
        """The number of events. Each must have exactly one delivery that is not a resend.

        Leaves out `endpoint.stopped`, which goes to the other endpoints of the workspace: here there is none.
        """
        first = rows(
            self.stack,
            "SELECT events.id, count(deliveries.id) FILTER (WHERE resent_from IS NULL)"
            " FROM events LEFT JOIN deliveries ON event_id = events.id WHERE events.workspace_id = %s"
            " AND events.kind <> 'endpoint.stopped' GROUP BY 1",
            shop.workspace_id,
        )
        if wrong := [event for event, number in first if number != 1]:
            self.flaws.append(f"{shop.hook}: events without a delivery, or with two: {wrong[:10]}")
        return len(first)

    def _check_arrived(self, shop: Shop, found: Sequence[Log]) -> None:
        """Checks that everything delivered arrived, each time with the bytes of its event and a genuine signature."""
        bodies = {
            delivery_id: bytes(body)
            for delivery_id, body in rows(
                self.stack,
                "SELECT deliveries.id, body FROM deliveries JOIN events ON events.id = event_id"
                " WHERE deliveries.workspace_id = %s",
                shop.workspace_id,
            )
        }
        arrived = [each for each in list(self.receiver.received) if each.path == shop.hook]
        lost = {log.delivery_id for log in found if log.status == "delivered"} - {each.delivery_id for each in arrived}
        if lost:
            self.flaws.append(f"{shop.hook}: {len(lost)} are called delivered and never arrived: {sorted(lost)[:10]}")
        for each in arrived:
            if bodies.get(each.delivery_id) != each.body:
                self.flaws.append(f"{shop.hook}: {each.delivery_id} arrived with another body")
            if not is_genuine(shop.secret, each.signature, each.body, each.at):
                self.flaws.append(f"{shop.hook}: {each.delivery_id} arrived under a false signature")

    def _check_repeated(self, found: Sequence[Log], repeated: Sequence[Received]) -> None:
        """Checks that each unrecorded arrival belongs to a lost claim, and that a fault explains the loss."""
        by_delivery: dict[str, list[Received]] = defaultdict(list)
        for each in repeated:
            by_delivery[each.delivery_id].append(each)
        for log in found:
            times = by_delivery.get(log.delivery_id, [])
            lost_claims = log.claim - log.attempts
            if len(times) > lost_claims:
                self.flaws.append(f"{log}: of {lost_claims} lost claims it arrived at {[each.at for each in times]}")
            for each in times:
                reason = self._reason(log, each)
                self.reasons[reason or "none"] += 1
                if reason is None:
                    self.flaws.append(f"{log}: arrived at {each.at:.3f} without being recorded, for no known reason")

    def _reason(self, log: Log, each: Received) -> str | None:
        found = list(dict.fromkeys(self._causes(log, each)))
        # The log shows that its worker survived and recorded it too late.
        if log.delivery_id in self._stale and len(found) > 1 and KILLED in found:
            found.remove(KILLED)
        return found[0] if found else None

    def _causes(self, log: Log, each: Received) -> Iterator[str]:
        """The faults during the lease of this attempt that may have kept it from being recorded."""
        lease_ends = each.at + self.lease_seconds
        for trouble in self.troubles:
            if trouble.began <= lease_ends and trouble.ended >= each.at - LATE_SECONDS:
                if trouble.is_of_sender and trouble.what.startswith("exit"):
                    yield KILLED
                if trouble.is_of_sender and trouble.what == "freeze":
                    yield "its worker was frozen"
                if trouble.what in ("restart_postgres", "crash_postgres"):
                    yield "PostgreSQL was away"
        for wish in self.wishes:
            if wish.endpoint_id == log.endpoint_id and each.at - self.lease_seconds <= wish.at <= lease_ends:
                yield "it was sent again while it was under way"
