"""Creates endpoints and their mail, and rings for it.

A program with the service's settings and domain code. `python -m bench.mail` reads orders, one JSON document per line,
and answers each with a line of JSON when it is done:

- `{"endpoints": addresses}`: creates a workspace with one endpoint for each; answers a list of [workspace, endpoint].
- `{"workspace": addresses}`: creates one workspace with an endpoint for each; answers [workspace, [endpoint, …]].
- `{"events": number, "workspaces": identifiers}`: records that many `contact.created` in all, in rotation.
- `{"pace": workspaces, "rate": number, "begin": time, "seconds": number}`: from that Unix time on, records `rate`
  events a second in each workspace, evenly spaced and each in its own transaction, and rings for them. Answers how many
  there were, and how late the latest was.
- `{"ring": endpoints}`: rings for all of them.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from app import bells, database
from app.database import transaction
from app.domain.deliveries import fan_out, lanes
from app.domain.people import workspaces
from app.domain.webhooks import endpoints
from app.domain.work.changes import Change
from app.domain.work.events import Cause, Recorder
from app.domain.work.units import Unit
from app.lib import clock, ids
from bench.programs import follow_orders

KIND = "contact.created"
TURN = 10  # events of a workspace that are recorded together, as a worker applies several writes in a transaction


def _carry_out(order: dict[str, Any]) -> Any:
    if "endpoints" in order:
        return [_make(address) for address in order["endpoints"]]
    if "workspace" in order:
        return make_together(order["workspace"])
    if "pace" in order:
        return _pace(order["pace"], order["rate"], order["begin"], order["seconds"])
    if "events" in order:
        return _seed(order["workspaces"], order["events"])
    lanes.ring(order["ring"])
    return bells.flush(30)


def _make(address: str) -> tuple[str, str]:
    workspace_id, endpoint_ids = make_together([address])
    return workspace_id, endpoint_ids[0]


def make_together(addresses: list[str]) -> tuple[str, list[str]]:
    """Creates a workspace with an endpoint for each address. Returns the identifiers of all."""
    workspace, _ = workspaces.create("Bench")
    return workspace.id, [make_endpoint(workspace.id, address, [KIND]) for address in addresses]


def make_endpoint(workspace_id: str, address: str, kinds: list[str]) -> str:
    """Creates an endpoint that gets events of these kinds. Returns its identifier."""
    payload = {"address": address, "events": kinds, "sealed_secret": endpoints.seal(endpoints.new_secret())}
    cause = Cause(None, ids.new("cmd"))
    change = Change(workspace_id, payload, ids.new("whe"), "endpoints.create", None, cause, Unit())
    with transaction():
        endpoints.create(change)
    return change.target


def _seed(workspace_ids: list[str], number: int) -> None:
    with transaction():
        while number > 0:
            for workspace_id in workspace_ids:
                _record(workspace_id, min(TURN, number))
                number -= TURN


def _pace(workspace_ids: list[str], rate: float, begin: float, seconds: float) -> tuple[int, float]:
    # Runs a thread for each workspace, like several workers, and not in step.
    number = round(rate * seconds)
    begins = [begin + place / rate / len(workspace_ids) for place in range(len(workspace_ids))]
    with ThreadPoolExecutor(len(workspace_ids)) as threads:
        latest = list(threads.map(partial(_pace_one, number=number, rate=rate), workspace_ids, begins))
    bells.flush(30)
    return number * len(workspace_ids), max(latest)


def _pace_one(workspace_id: str, begin: float, number: int, rate: float) -> float:
    latest = 0.0
    for turn in range(number):
        ahead = begin + turn / rate - time.time()
        if ahead > 0:
            time.sleep(ahead)
        latest = max(latest, -ahead)
        with transaction():
            _record(workspace_id, 1)
    database.database.close()
    return latest


def _record(workspace_id: str, number: int) -> None:
    recorder = Recorder(workspace_id)
    recorder.cause = Cause(None, ids.new("cmd"))
    for _ in range(number):
        contact_id = ids.new("con")
        recorder.record(KIND, {"contact": make_contact(contact_id)}, contact_id)
    fan_out.write(recorder)


def make_contact(contact_id: str) -> dict[str, Any]:
    """Returns the contact in the event of a form submission."""
    return {
        "id": contact_id,
        "external_id": None,
        "email": f"{contact_id}@example.com",
        "phone": "+491701234567",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "locale": "en-GB",
        "timezone": "Europe/London",
        "tags": ["newsletter", "vip"],
        "custom_fields": {"plan": "premium", "seats": 3},
        "opted_out": False,
        "created_at": clock.now(),
        "updated_at": clock.now(),
    }


if __name__ == "__main__":
    follow_orders(_carry_out)
