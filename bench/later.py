"""Makes deliveries that wait for their retry, and their bells: a program that runs with the service's settings.

`python -m bench.later` reads orders, a line of JSON each, and answers each with a line of JSON when it is done:

- `{"seed": url, "number": n, "endpoints": n, "begin": time, "spread": seconds}`: copies so many deliveries in, each of
  which has failed once and falls due at its turn between `begin` and the end of the spread, the endpoints in turn.
- `{"bells": true}`: puts the bells of all that wait into Redis; the answer is how many they are.
- `{"messages": n}`: sends so many delayed messages by Dramatiq's broker, one a delivery; the answer is their queue.
- `{"passes": n, "pause": seconds}`: makes so many of the scheduler's passes; the answer is how long each took.
"""

import io
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from dramatiq import Message
from dramatiq.common import dq_name

from app import bells, database, logs
from app.config import settings
from app.database import rows
from app.domain import events, lanes
from app.lib import ids
from bench.mail import KIND, make_contact, make_together
from scheduler.rounds import Round

EACH = 10  # endpoints of a workspace, to all of which each of its events goes
BATCH = 5_000
ERROR = "The server answered 503 Service Unavailable."
DELIVERIES = (
    "id, workspace_id, event_id, endpoint_id, kind, contact_id, attempts, step, last_error, due_at, claim, created_at"
)


def main() -> None:
    logs.configure("bench")  # to standard error: what is printed is answers
    database.connect()
    for line in sys.stdin:
        print(json.dumps(_carry_out(json.loads(line))), flush=True)


def _carry_out(order: dict[str, Any]) -> Any:
    if "seed" in order:
        return _seed(order["seed"], order["number"], order["endpoints"], order["begin"], order["spread"])
    if "bells" in order:
        return _ring_all_later()
    if "messages" in order:
        return _send_messages(order["messages"])
    return _make_passes(order["passes"], order["pause"])


# Deliveries


def _seed(url: str, number: int, endpoints: int, begin: float, spread: float) -> int:
    made = [make_together([f"{url}/{place}/{each}" for each in range(EACH)]) for place in range(endpoints // EACH)]
    failed = _time(begin - delay())
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
                # The claim is even: it was taken, and has been recorded.
                whose = (delivery_id, workspace_id, event_id, endpoint_id, KIND, contact_id)
                new_deliveries.append((*whose, 1, 1, ERROR, due, 2, failed))
                new_attempts.append((delivery_id, 1, failed, 12, 503, ERROR, ""))
        _copy("events (id, workspace_id, kind, contact_id, trace_id, body, created_at)", new_events)
        _copy(f"deliveries ({DELIVERIES})", new_deliveries)
        _copy("attempts (delivery_id, number, at, duration_ms, status, error, response_body)", new_attempts)
    return number


def delay() -> int:
    """Of the schedule's first retry, in seconds."""
    return settings().retry_schedule_seconds[0]


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _copy(columns: str, values: Iterable[tuple[Any, ...]]) -> None:
    lines = io.StringIO("".join("\t".join(map(str, line)) + "\n" for line in values))
    with database.database.connection().cursor() as cursor:
        cursor.copy_expert(f"COPY {columns} FROM STDIN", lines)


# Bells


def _ring_all_later() -> int:
    """Those that `lanes.ring_later` would have sent, in the order of time: one a quarter second."""
    waiting = rows("SELECT DISTINCT ceil(extract(epoch FROM due_at) * 4)::float / 4 FROM deliveries ORDER BY 1")
    queue = lanes.retry_queue(delay())
    for (at,) in waiting:
        bells.sending_broker().enqueue(_message(queue), delay=max(0, round((at - time.time()) * 1000)))
    return len(waiting)


def _message(queue: str, *arguments: str) -> Message[None]:
    return Message(queue_name=queue, actor_name=queue, args=arguments, kwargs={}, options={})


def _send_messages(number: int) -> str:
    queue = "bench-deliveries"
    for _ in range(number):
        bells.sending_broker().enqueue(_message(queue, ids.new("dlv")), delay=1000 * delay())
    return f"dramatiq:{dq_name(queue)}"


# Passes


def _make_passes(number: int, pause: float) -> list[float]:
    """Each from the first mailbox on, as none but the first of several looks at all that a pass can."""
    return list(_timed((Round(lanes.FAST, overdue_seconds=0.5, ring=lanes.ring) for _ in range(number)), pause))


def _timed(passes: Iterable[Callable[[], int]], pause: float) -> Iterator[float]:
    for make in passes:
        began = time.perf_counter()
        make()
        yield time.perf_counter() - began
        time.sleep(pause)


if __name__ == "__main__":
    main()
