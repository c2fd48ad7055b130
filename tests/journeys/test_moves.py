"""A version is restored and published while runs are under way, and they are moved to it: none is lost or repeated."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from tests.journeys.audit import rows
from tests.journeys.faults import kill
from tests.journeys.runs import make_due, make_sleepers, publish
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.stack.processes import ROOT
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

RUNS = 1_000
SETTLE_SECONDS = 120
PAUSE = {"id": "pause", "kind": "wait", "seconds": 86_400}
AFTER = {"id": "after", "kind": "add_tag", "tag": "moved"}
# A page asks for the move; the API has no route for it.
MOVE = """
import sys
from app import bells, database
from app.domain import writes
from app.domain.work.changes import Write

database.connect()
workspace_id, automation_id = sys.argv[1:]
versions = {"from_version": 1, "to_version": 3}
writes.accept(Write(workspace_id, "automations.move_runs", versions, "journey", automation_id))
bells.flush(30)
"""


def test_runs_survive_a_restored_version_and_their_move_to_it(stack: Stack, receiver: Receiver) -> None:
    shop = open_shop(stack, receiver)
    caller, automation = shop.caller(), publish(shop, [PAUSE, AFTER])
    make_sleepers(stack, shop.workspace_id, automation, RUNS)
    other = {"steps": [PAUSE | {"id": "another"}, AFTER | {"id": "else"}]}
    caller.apply("PATCH", f"automations/{automation}", {"definition": other})
    caller.apply("POST", f"automations/{automation}/publish")

    caller.apply("POST", f"automations/{automation}/restore", {"version": 1})
    caller.apply("POST", f"automations/{automation}/publish")
    subprocess.run(
        [sys.executable, "-c", MOVE, shop.workspace_id, automation], cwd=ROOT, env=stack.environment, check=True
    )
    moved = "SELECT count(*) FROM runs WHERE automation_id = %s AND version = 3"
    wait_until(lambda: rows(stack, moved, automation)[0][0] > 0, SETTLE_SECONDS, "some are moved")
    kill(stack, "writes")
    make_due(stack, automation)  # they go on while others are moved
    kill(stack, "automations")

    unfinished = "SELECT count(*) FROM runs WHERE automation_id = %s AND finished_at IS NULL"
    wait_until(lambda: rows(stack, unfinished, automation)[0][0] == 0, SETTLE_SECONDS, "all have ended")
    ended = "SELECT status, count(*) FROM runs WHERE automation_id = %s GROUP BY 1"
    assert dict(rows(stack, ended, automation)) == {"completed": RUNS}
    logged = "SELECT run_id, run_steps.step, run_steps.status FROM run_steps JOIN runs ON runs.id = run_id"
    log = f"{logged} WHERE automation_id = %s"
    taken = Counter(rows(stack, log, automation))
    assert set(taken.values()) == {1}
    assert Counter(step for _, step, _ in taken) == {"pause": RUNS, "after": RUNS}
    job = "SELECT status FROM jobs WHERE kind = 'automations.move_runs' AND workspace_id = %s"
    wait_until(lambda: rows(stack, job, shop.workspace_id) == [("succeeded",)], SETTLE_SECONDS, "the move ends")
    assert set(rows(stack, "SELECT DISTINCT version FROM runs WHERE automation_id = %s", automation)) <= {(1,), (3,)}
