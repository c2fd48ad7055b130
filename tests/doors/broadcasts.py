"""A workspace sends ninety broadcasts whose texts take long to fill in: runs of another workspace."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.doors.services import Tenant, service, tenant
from tests.doors.templates import LOOP, PROCESSES, runner
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.histories import fill

BROADCASTS, CONTACTS, SECONDS = 90, 500, 20
MOST_TIMES = 3.0  # of what a run takes without them
EVERYBODY = {"field": "contact.created_at", "is": "exists"}


def measure(tell: Callable[[str], None]) -> None:
    with service(PROCESSES, {"RATE_LIMIT": "0"}) as stack:
        attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim")
        fill(stack, attacker.workspace_id, CONTACTS)
        run = runner(stack, other)
        with victim(run) as alone:
            time.sleep(SECONDS)
        tell(f"a run of another workspace, before: {alone}")
        begin(attacker)
        with victim(run) as beside:
            time.sleep(SECONDS)
        [(reached,)] = rows(stack, "SELECT count(*) FROM broadcast_rows WHERE outcome = 'sent'")
        tell(f"a run beside {BROADCASTS} broadcasts, which reached {reached:,} contacts in {SECONDS} s: {beside}")
        tell(f"{beside.median / alone.median:.1f} times the median, {beside.p99 / alone.p99:.1f} times the p99")
        beside.check()
        assert reached
        assert beside.median <= MOST_TIMES * alone.median, "the runs of another workspace have become slow"


def begin(attacker: Tenant) -> None:
    """Sends the broadcasts to everybody; all are accepted when this returns, the last one is applied."""
    caller = attacker.caller()
    for number in range(BROADCASTS):
        body = {"name": f"Sale {number}", "filter": EVERYBODY, "message": {"text": f"{number} {LOOP}"}}
        answer = caller.call("POST", "broadcasts", body)
        assert answer.status == 202, answer
