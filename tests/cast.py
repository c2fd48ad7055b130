"""Who plays in the tests: a caller of the API with a token of a workspace, and what they need set up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import database
from app.domain import endpoints, jobs, sweeps, tokens, workspaces
from app.domain.jobs import Write
from app.lib import ids
from app.models.jobs import Job

KEY = "7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47"  # an Idempotency-Key


@dataclass(frozen=True)
class Api:
    """A caller: what it asks for is below its own workspace unless the path begins with '/'."""

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
        """One request; `key` and `wait` stand for the headers Idempotency-Key and Prefer."""
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
        """The same workspace with a token for these things alone."""
        return self.with_token(tokens.issue(self.workspace_id, "Restricted", restrictions)[1])

    def with_token(self, token: str) -> Api:
        return replace(self, token=token)

    def apply(self) -> None:
        """Does what a worker does: all accepted writes of the workspace."""
        apply(self.workspace_id)

    def done(self, response: TestResponse) -> dict[str, Any]:
        """The job of a 202 after it has been applied."""
        assert response.status_code == 202, response.text
        self.apply()
        return self.job(response)

    def job(self, response: TestResponse) -> dict[str, Any]:
        return dict(self.get(response.headers["Location"].removeprefix("https://bellhop.test")).json["data"])

    def contact(self, **fields: Any) -> dict[str, Any]:
        """A contact that is there, upserted with these fields."""
        job = self.done(self.post("contacts", fields))
        assert job["status"] == "succeeded", job
        return self.show_contact(job["resource"]["id"])

    def sale(self, contact_id: str, **fields: Any) -> dict[str, Any]:
        """A sale that is recorded: 19.90 EUR, unless the fields say otherwise."""
        return self._made("sales", {"contact_id": contact_id, "amount": "19.90", "currency": "EUR"} | fields)

    def booking(self, contact_id: str, **fields: Any) -> dict[str, Any]:
        """A booking that is there: a haircut at noon, unless the fields say otherwise."""
        times = {"starts_at": "2026-11-24T12:00:00.000Z", "ends_at": "2026-11-24T12:45:00.000Z"}
        return self._made("bookings", {"contact_id": contact_id, "title": "Haircut"} | times | fields)

    def _made(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        job = self.done(self.post(path, body))
        assert job["status"] == "succeeded", job
        return dict(self.get(f"{path}/{job['resource']['id']}").json["data"])

    def show_contact(self, contact_id: str) -> dict[str, Any]:
        return dict(self.get(f"contacts/{contact_id}").json["data"])

    def endpoint(self, address: str = "https://shop.example/hooks", events: Sequence[str] = ("*",)) -> str:
        """The identifier of an endpoint that is there."""
        made = self.post("webhooks/endpoints", {"address": address, "events": list(events)})
        return str(self.done(made)["resource"]["id"])


def found(client: FlaskClient, name: str) -> Api:
    """A new workspace, and a caller who may do everything in it."""
    workspace, token = workspaces.create(name)
    return Api(client, workspace.id, token)


def apply(workspace_id: str) -> None:
    """Applies the workspace's due writes, in as many turns as they take."""
    while database.rows("SELECT 1 FROM jobs WHERE workspace_id = %s AND due_at <= now() LIMIT 1", (workspace_id,)):
        jobs.work(workspace_id)


def sweep(endpoint_id: str) -> None:
    """Does the endpoint's sweeps, in as many turns as they take."""
    while database.rows("SELECT 1 FROM sweeps WHERE endpoint_id = %s AND due_at IS NOT NULL", (endpoint_id,)):
        sweeps.work(endpoint_id)


def accept(workspace_id: str, kind: str, payload: dict[str, Any], resource_id: str | None = None) -> Job:
    """A write that was accepted, and not applied yet."""
    return jobs.accept(Write(workspace_id, kind, payload, "trace-1", resource_id))[0]


def event_bodies(workspace_id: str) -> list[dict[str, Any]]:
    """The bodies of what happened in the workspace, oldest first."""
    bodies = all_of("SELECT body FROM events WHERE workspace_id = %s ORDER BY id", workspace_id)
    return [json.loads(bytes(body)) for body in bodies]


def event_kinds(workspace_id: str) -> list[str]:
    return [body["kind"] for body in event_bodies(workspace_id)]


def make_endpoint(workspace_id: str, address: str, events: Sequence[str] = ("*",)) -> tuple[str, str]:
    """An endpoint's identifier and its secret, made without the API."""
    secret, endpoint_id = endpoints.new_secret(), ids.new("whe")
    payload = {"address": address, "events": list(events), "sealed_secret": endpoints.seal(secret)}
    accept(workspace_id, "endpoints.create", payload, endpoint_id)
    apply(workspace_id)
    return endpoint_id, secret


def tables() -> list[str]:
    """All tables but that of the migrations; those that are partitioned as one, and last what others refer to."""
    return all_of(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
        " AND NOT relispartition AND relname <> 'migrations' ORDER BY relname = 'workspaces', relname"
    )


def row_counts() -> dict[str, int]:
    """How many rows each table has: what leaves no trace leaves them as they were."""
    return {table: one(f"SELECT count(*) FROM {table}") for table in tables()}


def one(sql: str, *parameters: Any) -> Any:
    """The one value that the query finds."""
    [(value,)] = database.rows(sql, parameters)
    return value


def all_of(sql: str, *parameters: Any) -> list[Any]:
    """The values of a query with one column."""
    return [value for (value,) in database.rows(sql, parameters)]


def indexes_used(query: Any) -> set[str]:
    """The indexes by which the database would answer; fails where it would read a whole table."""
    statement, parameters = query.sql()
    [(plan,)] = database.rows(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
    nodes = [plan[0]["Plan"]]
    for node in nodes:
        nodes += node.get("Plans", ())
    assert "Seq Scan" not in [node["Node Type"] for node in nodes], plan
    return {node["Index Name"] for node in nodes if "Index Name" in node}


def everything_stored() -> str:
    """All that the database holds, as text."""
    rows = [row for table in tables() for row in database.rows(f"SELECT * FROM {table}")]
    return "\n".join(str([bytes(value) if isinstance(value, memoryview) else value for value in row]) for row in rows)


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """What the condition says as soon as that is true; fails when it does not become so in time."""
    ends = time.monotonic() + seconds
    while not (said := condition()):
        assert time.monotonic() < ends, "The condition did not become true in time."
        time.sleep(0.005)
    return said


def in_threads(work: Sequence[Callable[[], Any]]) -> list[Any]:
    """What these return, or raise, when all begin at the same moment, each in a thread of its own."""
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


@contextmanager
def out_of_room(table: str, sqlstate: str = "53100") -> Iterator[None]:
    """PostgreSQL has no room for a row of that table, until the block ends."""
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
    """A worker beside the test: applies what is due, until the block ends."""
    stopping = threading.Event()

    def run() -> None:
        while not stopping.wait(0.002):
            for workspace_id in all_of("SELECT DISTINCT workspace_id FROM jobs WHERE due_at <= now()"):
                jobs.work(workspace_id)
        database.database.close()

    worker = threading.Thread(target=run)
    worker.start()
    try:
        yield
    finally:
        stopping.set()
        worker.join(20)
