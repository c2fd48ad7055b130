"""Seeds endpoints and their mail, and rings: a program that runs with the service's settings, by its own domain code.

`python -m bench.mail` reads orders, a line of JSON each, and answers each with a line of JSON when it is done:

- `{"endpoints": addresses}`: makes a workspace with one endpoint for each; the answer is their [workspace, endpoint].
- `{"workspace": addresses}`: makes one workspace with an endpoint for each; the answer is [workspace, [endpoint, …]].
- `{"events": number, "workspaces": identifiers}`: records so many `contact.created` in all, each workspace in turn.
- `{"pace": workspaces, "rate": number, "begin": time, "seconds": number}`: from that Unix time on records so many
  events a second in each, evenly and each in a transaction of its own, and rings for them; the answer is how many they
  were, and how late the latest was.
- `{"ring": endpoints}`: rings for them all.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from app import bells, database, logs
from app.database import transaction
from app.domain import endpoints, lanes, workspaces
from app.domain.changes import Change
from app.domain.events import Cause, Recorder
from app.lib import clock, ids

KIND = "contact.created"
TURN = 10  # events of a workspace that are recorded together, as a worker applies a few writes in one transaction


def main() -> None:
    logs.configure("bench")  # to standard error: what is printed is answers
    database.connect()
    for line in sys.stdin:
        print(json.dumps(_carry_out(json.loads(line))), flush=True)


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
    workspace, _ = workspaces.create("Bench")
    return workspace.id, [_make_endpoint(workspace.id, address) for address in addresses]


def _make_endpoint(workspace_id: str, address: str) -> str:
    payload = {"address": address, "events": [KIND], "sealed_secret": endpoints.seal(endpoints.new_secret())}
    change = Change(workspace_id, payload, ids.new("whe"), Recorder(workspace_id), "endpoints.create", None)
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
    # A thread for each, as several workers have them, and their turns not at the same time.
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
    recorder.write()


def make_contact(contact_id: str) -> dict[str, Any]:
    """What the event of a contact made by a form carries."""
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
    main()
