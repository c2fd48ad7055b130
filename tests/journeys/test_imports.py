"""An import whose workers are killed: lines take effect once and in order, and other workspaces do not wait."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from tests.journeys.audit import rows, settle
from tests.journeys.faults import kill
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

LINES = 5000
KILLS = 3
NDJSON = {"Content-Type": "application/x-ndjson"}


def test_each_line_of_an_import_takes_effect_once_though_its_workers_are_killed(
    stack: Stack, receiver: Receiver, report: Callable[[object], None]
) -> None:
    shop, other = open_shop(stack, receiver), open_shop(stack, receiver, "Other")
    caller = shop.caller()
    text = b"\n".join(
        json.dumps({"external_id": f"c-{number}", "first_name": "new"}).encode() for number in range(LINES)
    )

    job = caller.call("POST", "contacts/import", text, NDJSON).data
    behind = caller.call("POST", "contacts", {"external_id": "c-0", "first_name": "changed"}).data
    began, done, kills, waited = time.monotonic(), 0, 0, 0.0
    while kills < KILLS:
        wait_until(lambda done=done: _done(stack, job["id"]) > done, 30, "the import goes on")
        asked = time.monotonic()
        other.caller().apply("POST", "contacts", {"external_id": f"other-{kills}"})
        waited = max(waited, time.monotonic() - asked)
        kill(stack, "writes")
        kills, done = kills + 1, _done(stack, job["id"])
    assert done < LINES
    wait_until(lambda: caller.get(f"jobs/{behind['id']}")["status"] == "succeeded", 90, "what is behind is done")
    took = time.monotonic() - began
    settle(stack, [shop, other], seconds=90)

    ended = caller.get(f"jobs/{job['id']}")
    assert (ended["status"], ended["progress"]) == ("succeeded", {"total": LINES, "done": LINES, "failed": 0})
    [(contacts, names)] = rows(
        stack,
        "SELECT count(*), array_agg(first_name) FILTER (WHERE external_id = 'c-0') FROM contacts"
        " WHERE workspace_id = %s",
        shop.workspace_id,
    )
    assert (contacts, names) == (LINES, ["changed"])
    told = """
        SELECT kind, count(*), count(DISTINCT contact_id) FROM events
        WHERE workspace_id = %s GROUP BY kind ORDER BY kind
    """
    assert rows(stack, told, shop.workspace_id) == [("contact.created", LINES, LINES), ("contact.updated", 1, 1)]
    report(f"{LINES} lines in {took:.1f} s over {kills} kills; another workspace's write took {waited:.2f} s at most")


def _done(stack: Stack, job_id: str) -> int:
    return int(rows(stack, "SELECT done FROM imports WHERE job_id = %s", job_id)[0][0])
