"""Creates deliveries that wait for their retry: a program that runs with the service's settings.

`python -m bench.later` reads orders, one JSON document per line. It answers each with a line of JSON when it is done:

- `{"seed": url, "number": n, "endpoints": n, "begin": time, "spread": seconds}`: copies n deliveries in, each of which
  has failed once. They fall due evenly over `spread` seconds from `begin`, in rotation over the endpoints.
- `{"passes": n, "pause": seconds}`: runs n of the scheduler's passes; answers how long each took.
"""

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from app.config import settings
from app.domain.deliveries import lanes
from app.domain.work import events
from app.lib import ids
from bench.mail import KIND, make_contact, make_together
from bench.programs import copy, follow_orders
from scheduler.overdue import Overdue

EACH = 10  # endpoints of a workspace; each gets all events of the workspace
BATCH = 5_000
NULL = r"\N"  # the form that COPY reads
ERROR = "The server answered 503 Service Unavailable."
DELIVERIES = (
    "id, workspace_id, event_id, endpoint_id, kind, contact_id, attempts, tries, last_error, due_at,"
    " next_attempt_at, claim, created_at"
)


def _carry_out(order: dict[str, Any]) -> Any:
    if "seed" in order:
        return _seed(order["seed"], order["number"], order["endpoints"], order["begin"], order["spread"])
    return list(_passes(order["passes"], order["pause"]))


def _seed(url: str, number: int, endpoints: int, begin: float, spread: float) -> int:
    made = [make_together([f"{url}/{place}/{each}" for each in range(EACH)]) for place in range(endpoints // EACH)]
    failed = _time(begin - settings().retry_schedule_seconds[0])
    for first in range(0, number, BATCH):
        new_events, new_deliveries, new_attempts = [], [], []
        for turn in range(first, min(first + BATCH, number), EACH):
            workspace_id, endpoint_ids = made[turn // EACH % len(made)]
            event_id, contact_id = ids.new("evt"), ids.new("con")
            body = events.body(
                event_id, KIND, datetime.now(UTC), workspace_id, {"contact": make_contact(contact_id)}
            ).hex()
            new_events.append((event_id, workspace_id, KIND, contact_id, ids.new("cmd"), f"\\\\x{body}", failed))
            for place, endpoint_id in enumerate(endpoint_ids):
                delivery_id, due = ids.new("dlv"), _time(begin + (turn + place) * spread / number)
                whose = (delivery_id, workspace_id, event_id, endpoint_id, KIND, contact_id)
                new_deliveries.append((*whose, 1, 1, ERROR, NULL, due, 1, failed))
                new_attempts.append((delivery_id, 1, failed, 12, 503, ERROR, ""))
        copy("events (id, workspace_id, kind, contact_id, trace_id, body, created_at)", new_events)
        copy(f"deliveries ({DELIVERIES})", new_deliveries)
        copy("attempts (delivery_id, number, at, duration_ms, status, error, response_body)", new_attempts)
    return number


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _passes(number: int, pause: float) -> Iterable[float]:
    """Times passes. Each starts at the first mailbox, because later ones would look at fewer mailboxes."""
    for _ in range(number):
        overdue, began = Overdue(lanes.FAST, overdue_seconds=0.5, ring=lanes.ring), time.perf_counter()
        overdue()
        yield time.perf_counter() - began
        time.sleep(pause)


if __name__ == "__main__":
    follow_orders(_carry_out)
