"""The cast of the tests: callers of the API, each with a workspace and a token, and the data they need."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import bells, database
from app.domain import writes
from app.domain.assignment import assignments
from app.domain.billing import usage
from app.domain.broadcasts import broadcast_choices
from app.domain.deliveries import replays, sweeps
from app.domain.insight import figures
from app.domain.people import tokens, workspaces
from app.domain.reports import counting
from app.domain.segments import schedules
from app.domain.triggers import fan_out_parts, start_scans
from app.domain.webhooks import endpoints
from app.domain.work import equal_parts
from app.domain.work.changes import Write
from app.lib import ids
from app.mailbox import serving
from app.models.jobs import Job
from scheduler import overdue

Asked = ParamSpec("Asked")
Found = TypeVar("Found")
# A slice of time that ends by itself only where work goes round in it, also on a slow machine.
LONG_SLICE_SECONDS = 10.0
_SLICED: Sequence[Any] = (
    assignments,
    broadcast_choices,
    counting,
    equal_parts,
    figures,
    overdue,
    schedules,
    serving,
    start_scans,
    usage,
)

KEY = "7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47"  # an Idempotency-Key


@dataclass(frozen=True)
class Api:
    """A caller. Paths are relative to its own workspace, unless they begin with '/'."""

    client: FlaskClient
    workspace_id: str
    token: str

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.ask("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> TestResponse:
        return self.ask("POST", path, body, **options)

    def patch(self, path: str, body: Any = None, **options: Any) -> TestResponse:
        return self.ask("PATCH", path, body, **options)

    def delete(self, path: str, **options: Any) -> TestResponse:
        return self.ask("DELETE", path, **options)

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> TestResponse:
        """Sends a request; `key` and `wait` set the headers Idempotency-Key and Prefer."""
        headers = {"Authorization": f"Bearer {self.token}"} | options.pop("headers", {})
        if "key" in options:
            headers["Idempotency-Key"] = options.pop("key")
        if "wait" in options:
            headers["Prefer"] = f"wait={options.pop('wait')}"
        if body is not None:
            options["json"] = body
        return self.client.open(self.path(path), method=method, headers=headers, **options)

    def path(self, path: str) -> str:
        return path if path.startswith("/") else f"/api/v1/workspaces/{self.workspace_id}/{path}"

    def restricted_to(self, *restrictions: str) -> Api:
        """A caller of the same workspace whose token has these restrictions."""
        return self.with_token(tokens.issue(self.workspace_id, "Restricted", restrictions)[1])

    def with_token(self, token: str) -> Api:
        return replace(self, token=token)

    def apply(self) -> None:
        """Applies all accepted writes of the workspace, as a worker does."""
        apply(self.workspace_id)

    def done(self, response: TestResponse) -> dict[str, Any]:
        """Applies the write behind a 202 and returns its job."""
        assert response.status_code == 202, response.text
        self.apply()
        return self.job(response)

    def job(self, response: TestResponse) -> dict[str, Any]:
        return dict(self.get(response.headers["Location"].removeprefix("https://bellhop.test")).json["data"])

    def contact(self, **fields: Any) -> dict[str, Any]:
        """Upserts a contact with these fields and returns it."""
        job = self.done(self.post("contacts", fields))
        assert job["status"] == "succeeded", job
        return self.show_contact(job["resource"]["id"])

    def sale(self, contact_id: str, **fields: Any) -> dict[str, Any]:
        """Records a sale, by default of 19.90 EUR, and returns it."""
        return self._made("sales", {"contact_id": contact_id, "amount": "19.90", "currency": "EUR"} | fields)

    def booking(self, contact_id: str, **fields: Any) -> dict[str, Any]:
        """Creates a booking, by default for a haircut at noon, and returns it."""
        times = {"starts_at": "2026-11-24T12:00:00.000Z", "ends_at": "2026-11-24T12:45:00.000Z"}
        return self._made("bookings", {"contact_id": contact_id, "title": "Haircut"} | times | fields)

    def automation(self, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Creates an automation of these steps, by default of one that adds a tag, and returns it."""
        definition = {"steps": list(steps) or [{"id": "mark", "kind": "add_tag", "tag": "welcomed"}]}
        return self._made("automations", {"name": "Welcome", "definition": definition} | fields)

    def published(self, *steps: dict[str, Any], **fields: Any) -> str:
        """Creates and publishes an automation; returns its identifier."""
        automation_id = str(self.automation(*steps, **fields)["id"])
        assert self.done(self.post(f"automations/{automation_id}/publish"))["status"] == "succeeded"
        return automation_id

    def _made(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        job = self.done(self.post(path, body))
        assert job["status"] == "succeeded", job
        return dict(self.get(f"{path}/{job['resource']['id']}").json["data"])

    def show_contact(self, contact_id: str) -> dict[str, Any]:
        return dict(self.get(f"contacts/{contact_id}").json["data"])

    def told_contact(self, contact_id: str) -> dict[str, Any]:
        """The contact as events and lists have it."""
        shown = self.show_contact(contact_id)
        return {name: value for name, value in shown.items() if name not in ("identities", "suggested_merges")}

    def endpoint(self, address: str = "https://shop.example/hooks", events: Sequence[str] = ("*",)) -> str:
        """Creates an endpoint and returns its identifier."""
        made = self.post("webhooks/endpoints", {"address": address, "events": list(events)})
        return str(self.done(made)["resource"]["id"])


def found(client: FlaskClient, name: str) -> Api:
    """Creates a workspace and returns an unrestricted caller of it."""
    workspace, token = workspaces.create(name)
    return Api(client, workspace.id, token)


def apply(workspace_id: str) -> None:
    """Applies all due writes of the workspace and creates their deliveries."""
    for table, work in (("jobs", writes.work), ("events", fan_out_parts.work)):
        while database.rows(
            f"SELECT 1 FROM {table} WHERE workspace_id = %s AND due_at <= now() AND (leased_until > now()) IS NOT TRUE",
            (workspace_id,),
        ):
            work(workspace_id)


def apply_until(workspace_id: str, query: str, *parameters: object) -> None:
    """Applies the workspace's writes, of which one may be held up, until the query finds a row."""
    until(lambda: writes.work(workspace_id) or database.rows(query, parameters), seconds=60)


def sweep(endpoint_id: str) -> None:
    """Runs all sweeps of the endpoint to their end."""
    while database.rows("SELECT 1 FROM sweeps WHERE endpoint_id = %s AND due_at IS NOT NULL", (endpoint_id,)):
        sweeps.work(endpoint_id)


def replay(replay_id: str) -> None:
    """Works on the replay until it has ended, or waits for somebody or its limit."""
    while database.rows("SELECT 1 FROM replays WHERE id = %s AND due_at IS NOT NULL", (replay_id,)):
        replays.work(replay_id)


def accept(workspace_id: str, kind: str, payload: dict[str, Any], resource_id: str | None = None) -> Job:
    """Accepts a write without applying it, and returns its job."""
    return writes.accept(Write(workspace_id, kind, payload, "trace-1", resource_id))[0]


def event_bodies(workspace_id: str) -> list[dict[str, Any]]:
    """The bodies of the workspace's events, oldest first."""
    bodies = all_of("SELECT body FROM events WHERE workspace_id = %s ORDER BY id", workspace_id)
    return [json.loads(bytes(body)) for body in bodies]


def event_kinds(workspace_id: str) -> list[str]:
    return [body["kind"] for body in event_bodies(workspace_id)]


def make_endpoint(workspace_id: str, address: str, events: Sequence[str] = ("*",)) -> tuple[str, str]:
    """Creates an endpoint without the API; returns its identifier and its secret."""
    secret, endpoint_id = endpoints.new_secret(), ids.new("whe")
    payload = {"address": address, "events": list(events), "sealed_secret": endpoints.seal(secret)}
    accept(workspace_id, "endpoints.create", payload, endpoint_id)
    apply(workspace_id)
    return endpoint_id, secret


def tables() -> list[str]:
    """All tables but `migrations`, without partitions, in an order in which they can be emptied."""
    return all_of(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
        " AND NOT relispartition AND relname <> 'migrations' ORDER BY relname IN ('accounts', 'workspaces'), relname"
    )


def written() -> str:
    """What changes with every transaction that writes anything, and with the database."""
    return str(one("SELECT current_database() || pg_current_snapshot()"))


def until_written(look: Callable[Asked, Found]) -> Callable[Asked, Found]:
    """The same look into the database, not repeated while no transaction has written anything."""
    seen: dict[Any, tuple[str, Found]] = {}

    @wraps(look)
    def looked(*args: Asked.args, **named: Asked.kwargs) -> Found:
        state = written()
        if args not in seen or seen[args][0] != state:
            seen[args] = state, look(*args, **named)
        return seen[args][1]

    return looked


@until_written
def row_counts() -> dict[str, int]:
    """The number of rows in each table, to show that something left no trace."""
    return dict(database.rows(" UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in tables())))


def one(sql: str, *parameters: Any) -> Any:
    """The single value that the query returns."""
    [(value,)] = database.rows(sql, parameters)
    return value


def all_of(sql: str, *parameters: Any) -> list[Any]:
    """The values of a single-column query."""
    return [value for (value,) in database.rows(sql, parameters)]


def indexes_used(query: Any) -> set[str]:
    """The indexes that the query's plan uses. Fails if it would scan a whole table."""
    statement, parameters = query.sql()
    [(plan,)] = database.rows(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
    nodes = [plan[0]["Plan"]]
    for node in nodes:
        nodes += node.get("Plans", ())
    assert "Seq Scan" not in [node["Node Type"] for node in nodes], plan
    return {node["Index Name"] for node in nodes if "Index Name" in node}


def everything_stored() -> str:
    """Everything in the database, as text."""
    rows = [row for table in tables() for row in database.rows(f"SELECT * FROM {table}")]
    return "\n".join(str([bytes(value) if isinstance(value, memoryview) else value for value in row]) for row in rows)


def rung_on(queue: str) -> list[str]:
    """The owners that the messages in the queue ring for, one entry per ring, sorted."""
    bells.flush(20)
    client, key = bells.flags(), f"dramatiq:{queue}"
    messages = [client.hget(f"{key}.msgs", message_id) for message_id in client.lrange(key, 0, -1)]
    return sorted(owner for message in messages if message for owner in json.loads(message)["args"])


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Waits until the condition is true and returns its value. Fails if that takes too long."""
    ends = time.monotonic() + seconds
    while not (said := condition()):
        assert time.monotonic() < ends, "The condition did not become true in time."
        time.sleep(0.005)
    return said


def in_threads(work: Sequence[Callable[[], Any]]) -> list[Any]:
    """Runs all at the same moment, each in its own thread; returns what each returned or raised."""
    results: list[Any] = [None] * len(work)
    together = threading.Barrier(len(work))

    def run(number: int) -> None:
        try:
            together.wait(20)
            results[number] = work[number]()
        except Exception as error:
            results[number] = error
        finally:
            database.database.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "Not all of it ended in time."
    return results


def in_another_process(work: Callable[[], object]) -> int:
    """What a process ends with that does this; 0 if it got to the end."""
    if (pid := os.fork()) == 0:
        try:
            database.database._state.reset()  # type: ignore[attr-defined] # the connection is the parent's
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def set_slices(seconds: float) -> None:
    """Sets for how long a worker or the scheduler goes on with one piece of work before others get a turn."""
    for module in _SLICED:
        module.SLICE_SECONDS = seconds


@contextmanager
def short_slices() -> Iterator[None]:
    """Ends slices of time after one step: work that waits for a locked row would go round until the slice ends."""
    before = [module.SLICE_SECONDS for module in _SLICED]
    set_slices(0)
    try:
        yield
    finally:
        for module, seconds in zip(_SLICED, before, strict=True):
            module.SLICE_SECONDS = seconds


@contextmanager
def elsewhere(work: Callable[[], object]) -> Iterator[None]:
    """Another connection has done the work in a transaction that ends with the block."""
    other = database.Database(None)
    other.init(**{"database": database.database.database, **database.database.connect_params})
    ours, other_state = database.database._state, other._state  # type: ignore[attr-defined]
    with other.atomic():
        database.database._state = other_state  # type: ignore[attr-defined]
        try:
            work()
        finally:
            database.database._state = ours  # type: ignore[attr-defined]
        with short_slices():
            yield
    other.close()


@contextmanager
def out_of_room(table: str, sqlstate: str = "53100") -> Iterator[None]:
    """Within the block PostgreSQL has no room for another row in that table."""
    raised = f"RAISE EXCEPTION 'could not extend file' USING ERRCODE = '{sqlstate}'"
    database.rows(
        f"CREATE FUNCTION full_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {raised}; END $$;"
        f"CREATE TRIGGER full_up BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION full_up()"
    )
    try:
        yield
    finally:
        database.rows(f"DROP TRIGGER full_up ON {table}; DROP FUNCTION full_up()")


@contextmanager
def working() -> Iterator[None]:
    """Runs a worker beside the block that applies due writes."""
    stopping = threading.Event()

    def run() -> None:
        while not stopping.wait(0.002):
            for workspace_id in all_of("SELECT DISTINCT workspace_id FROM jobs WHERE due_at <= now()"):
                writes.work(workspace_id)
        database.database.close()

    worker = threading.Thread(target=run)
    worker.start()
    try:
        yield
    finally:
        stopping.set()
        worker.join(20)


@contextmanager
def database_away() -> Iterator[None]:
    """PostgreSQL refuses connections inside the block, for the present thread."""
    database.database.close()
    database.connect_to("postgresql://nobody@127.0.0.1:9/nowhere")
    try:
        yield
    finally:
        database.database.close()
        database.connect()
