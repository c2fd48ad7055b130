"""Creates automations, contacts and runs, and rings for them.

A program with the service's settings and domain code. `python -m bench.run_seeds` reads orders, one JSON document per
line, and answers each with a line of JSON when it is done:

- `{"publish": steps, "address": address?, "workspace": identifier?}`: publishes an automation of these steps. Without a
  workspace, creates one, with an endpoint that gets all events if there is an address. Answers [workspace, automation,
  token].
- `{"contacts": workspace, "number": n}`: creates contacts; answers their identifiers.
- `{"runs": [workspace, automation], "contacts": identifiers, "due": time}`: creates a run of each contact, due then.
- `{"sleepers": [[workspace, automation], …], "contacts": [identifiers, …], "begin": time, "spread": seconds}`: creates,
  in each automation, a run of each of its contacts that waits in the first step. These fall due evenly over `spread`
  seconds from `begin`.
- `{"ring": workspaces}`: rings for the runs of all of them.
- `{"passes": n, "pause": seconds}`: makes n passes of waking and of overdue runs; answers how long each took.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from app import bells, mailbox
from app.domain.people import workspaces
from app.domain.triggers import run_states
from app.lib import ids
from bench.mail import make_endpoint
from bench.programs import copy, follow_orders
from scheduler.overdue import Overdue
from tests.automations import make_automation

NULL = r"\N"  # the form that COPY reads
RUNS = (
    "id, workspace_id, automation_id, version, contact_id, status, step, taken, logged, wait, waits_for, trace_id,"
    " resume_at, due_at, started_at"
)


def _carry_out(order: dict[str, Any]) -> Any:
    if "publish" in order:
        return _publish(order["publish"], order.get("address"), order.get("workspace"))
    if "runs" in order:
        workspace_id, automation_id = order["runs"]
        return _make_runs(workspace_id, automation_id, order["contacts"], order["due"])
    if "sleepers" in order:
        return _make_sleepers(order["sleepers"], order["contacts"], order["begin"], order["spread"])
    if "contacts" in order:
        return _make_contacts(order["contacts"], order["number"])
    if "ring" in order:
        for workspace_id in order["ring"]:
            mailbox.ring(run_states.MAIL, workspace_id)
        return bells.flush(30)
    return list(_passes(order["passes"], order["pause"]))


def _publish(steps: list[dict[str, Any]], address: str | None, workspace_id: str | None) -> tuple[str, str, str | None]:
    token = None
    if workspace_id is None:
        workspace, token = workspaces.create("Bench")
        workspace_id = workspace.id
    if address:
        make_endpoint(workspace_id, address, ["*"])
    return workspace_id, make_automation(workspace_id, {"triggers": [], "steps": steps}), token


def _make_contacts(workspace_id: str, number: int) -> list[str]:
    made = [ids.new("con") for _ in range(number)]
    copy(
        "contacts (id, workspace_id, email, first_name, tags)",
        ((contact_id, workspace_id, f"{contact_id}@example.com", "Ada", "{newsletter}") for contact_id in made),
    )
    return made


def _make_runs(workspace_id: str, automation_id: str, contacts: list[str], due: float) -> None:
    at = _time(due)
    runs = [ids.new("run") for _ in contacts]
    copy(
        f"runs ({RUNS})",
        (
            (run, workspace_id, automation_id, 1, contact, "queued", NULL, 0, 0, 0, NULL, "bench", NULL, at, NULL)
            for run, contact in zip(runs, contacts, strict=True)
        ),
    )
    _enrol(workspace_id, automation_id, contacts, runs)


def _make_sleepers(automations: list[list[str]], contacts: list[list[str]], begin: float, spread: float) -> None:
    """Creates runs in rotation over the automations, so that at any time some runs of each fall due."""
    number = sum(map(len, contacts))
    started = _time(time.time())
    for place, ((workspace_id, automation_id), theirs) in enumerate(zip(automations, contacts, strict=True)):
        runs, due = [ids.new("run") for _ in theirs], begin + place * spread / number
        times = [due + turn * spread / len(theirs) for turn in range(len(theirs))]
        copy(
            f"runs ({RUNS})",
            (
                (
                    *(run, workspace_id, automation_id, 1, contact, "waiting", "pause", 1, 1, 1, "time", "bench"),
                    *(_time(at), NULL, started),
                )
                for run, contact, at in zip(runs, theirs, times, strict=True)
            ),
        )
        _enrol(workspace_id, automation_id, theirs, runs)


def _enrol(workspace_id: str, automation_id: str, contacts: list[str], runs: list[str]) -> None:
    copy(
        "enrolments (id, workspace_id, contact_id, automation_id, run_id, active)",
        (
            (f"{contact}/{automation_id}", workspace_id, contact, automation_id, run, 1)
            for contact, run in zip(contacts, runs, strict=True)
        ),
    )


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _passes(number: int, pause: float) -> Iterable[float]:
    """Times both passes over runs together. Each pass starts at the first mailbox."""
    for _ in range(number):
        overdue, began = Overdue(run_states.MAIL, overdue_seconds=0.5), time.perf_counter()
        mailbox.wake_and_ring(run_states.WAITING)
        overdue()
        yield time.perf_counter() - began
        time.sleep(pause)


if __name__ == "__main__":
    follow_orders(_carry_out)
