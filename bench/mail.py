"""Seeds endpoints and their mail, and rings: a program that runs with the service's settings, by its own domain code.

`python -m bench.mail` reads orders, a line of JSON each, and answers each with a line of JSON when it is done:

- `{"endpoints": addresses}`: makes a workspace with one endpoint for each; the answer is their [workspace, endpoint].
- `{"events": number, "workspaces": identifiers}`: records so many `contact.created` in all, each workspace in turn.
- `{"ring": endpoints}`: rings for them all.
"""

import json
import sys
from typing import Any

from app import bells, database
from app.database import transaction
from app.domain import endpoints, lanes, workspaces
from app.domain.changes import Change
from app.domain.events import Cause, Recorder
from app.lib import clock, ids

KIND = "contact.created"
TURN = 10  # events of a workspace that are recorded together, as a worker applies a few writes in one transaction


def main() -> None:
    database.connect()
    for line in sys.stdin:
        print(json.dumps(_carry_out(json.loads(line))), flush=True)


def _carry_out(order: dict[str, Any]) -> Any:
    if "endpoints" in order:
        return [_make(address) for address in order["endpoints"]]
    if "events" in order:
        return _seed(order["workspaces"], order["events"])
    lanes.ring(order["ring"])
    return bells.flush(30)


def _make(address: str) -> tuple[str, str]:
    workspace, _ = workspaces.create("Bench")
    payload = {"address": address, "events": [KIND], "sealed_secret": endpoints.seal(endpoints.new_secret())}
    change = Change(workspace.id, payload, ids.new("whe"), Recorder(workspace.id))
    with transaction():
        endpoints.create(change)
    return workspace.id, change.target


def _seed(workspace_ids: list[str], number: int) -> None:
    with transaction():
        while number > 0:
            for workspace_id in workspace_ids:
                recorder = Recorder(workspace_id)
                recorder.cause = Cause(None, ids.new("cmd"))
                for _ in range(min(TURN, number)):
                    contact_id = ids.new("con")
                    recorder.record(KIND, {"contact": _contact(contact_id)}, contact_id)
                recorder.write()
                number -= TURN


def _contact(contact_id: str) -> dict[str, Any]:
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
