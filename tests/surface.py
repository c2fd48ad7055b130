"""The surface of the API, derived from the application: what each route takes, and what holds for every response.

New routes are found without being listed here.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote_to_bytes

import marshmallow
from flask import Flask
from flask.testing import FlaskClient
from marshmallow import fields, validate
from werkzeug.test import TestResponse

from app import database
from app.api.lists import PageQuery
from app.api.openapi.examples import PREFIXES
from app.lib import clock, ids
from app.problems import PROBLEMS
from tests.cast import Api, all_of, found, one, tables, until_written
from tests.later import schedule
from tests.people import make_member
from tests.talks import add_note, make_channel, make_macro, make_saved_reply, receive

# Columns that every authenticated request may change.
VOLATILE = {"tokens": ["last_used_at"]}
_numbers = itertools.count(1)
# Fields of bodies that are not required, but without which the body is refused.
OPTIONAL = (
    "external_id",
    "settings",
    "text",
    "MessageToContact.contact_id",
    "BroadcastCreate.filter",
    "BroadcastCreate.message",
)
# Values for fields whose examples would be refused.
VALID = {"address": "https://shop.example/hooks", "events": ["*"], "ends_at": "2026-01-01T01:00:00Z"}
VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}
DOCUMENT = "/api/v1/openapi.json"
SECRET_KEY = "tests-tests-"
# Internals that no response may reveal.
INSIDE = re.compile(
    r"Traceback|File \\?\"|\.py\b|SELECT |INSERT |UPDATE |psycopg|peewee|werkzeug|flask|marshmallow|sealed_secret"
    r"|Exception|gunicorn|DETAIL:|constraint"
)


TOKEN = re.compile(r"bhp_\w{20}")
# What stands in paths besides identifiers; else a tag.
_NAMES = {"version": "1"}


@dataclass(frozen=True)
class Operation:
    """A method of a route; `rule` in Flask's notation, `body` and `query` if it takes them.

    A token with one of the `restrictions` may use it; any token may if there are none.
    """

    method: str
    rule: str
    restrictions: tuple[str, ...]
    body: marshmallow.Schema | None
    query: marshmallow.Schema | None
    makes_job: bool
    takes_file: bool

    def __str__(self) -> str:
        return f"{self.method} {self.rule}"

    @property
    def restriction(self) -> str | None:
        return self.restrictions[0] if self.restrictions else None

    @property
    def writes(self) -> bool:
        return self.method != "GET" and not self.rule.endswith(("/simulate", "/segments/count"))

    @property
    def parameters(self) -> list[str]:
        """The names of the path's parameters, without the workspace."""
        return [name for name in re.findall(r"<(?:\w+:)?(\w+)>", self.rule) if name != "workspace"]

    @property
    def collection(self) -> str:
        """The part of the path that its long and short form share."""
        return self.rule.removeprefix("/api/v1").removeprefix("/workspaces/<workspace>")

    @property
    def nouns(self) -> list[str]:
        """The nouns whose identifiers are in the path."""
        return [name.removesuffix("_id") for name in self.parameters if name.endswith("_id")]

    def path(self, workspace_id: str, known: dict[str, str], **others: str) -> str:
        """The path with identifiers from `known` by noun, or from `others` by parameter; otherwise `vip`."""
        values = {name: known.get(name.removesuffix("_id"), _NAMES.get(name, "vip")) for name in self.parameters}
        values |= {"workspace": workspace_id, **others}
        return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: values[found[1]], self.rule)


def operations(app: Flask) -> list[Operation]:
    """All operations of the API, without its document. Deletions come last, the shortest paths at the very end."""
    every = [
        _operation(method, rule.rule, app.view_functions[rule.endpoint])
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/v1/") and rule.rule != DOCUMENT
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"})
    ]
    return sorted(every, key=lambda operation: (operation.method == "DELETE", -len(operation.rule), str(operation)))


def _operation(method: str, rule: str, view: Any) -> Operation:
    documented = getattr(view, "_apidoc", {})
    taken = {each["in"]: each["schema"]() for each in documented.get("arguments", {}).get("parameters", ())}
    restriction = getattr(view, "restriction", None)
    return Operation(
        method,
        rule,
        () if restriction is None else (restriction, *view.other_restrictions),
        taken.get("json"),
        taken.get("query"),
        makes_job=202 in documented.get("response", {}).get("responses", ()),
        takes_file="requestBody" in documented.get("manual_doc", {}),
    )


def lists(every: list[Operation]) -> list[Operation]:
    return [operation for operation in every if isinstance(operation.query, PageQuery)]


def views(every: list[Operation]) -> list[Operation]:
    """Returns one operation of each view, in turn at its long and its short address. Both lead to the same code."""
    addresses: dict[tuple[str, str], list[Operation]] = {}
    for operation in every:
        addresses.setdefault((operation.method, operation.collection), []).append(operation)
    return [each[number % len(each)] for number, each in enumerate(addresses.values())]


def sample(schema: marshmallow.Schema, known: dict[str, str]) -> dict[str, Any]:
    """A body that is valid for `schema`, with identifiers from `known`."""
    of_schema = type(schema).__name__
    if of_schema == "MergeBody":  # with another contact than that in the path
        known = known | {"contact": known.get("other", known.get("contact", ""))}
    wanted = {
        name: field
        for name, field in schema.load_fields.items()
        if field.required or name in OPTIONAL or f"{of_schema}.{name}" in OPTIONAL
    }
    return {name: VALID.get(name) or sample_of(name, field, known) for name, field in wanted.items()}


def sample_of(name: str, field: Any, known: dict[str, str]) -> Any:
    if name.endswith("_id") and name.removesuffix("_id") in PREFIXES:
        return known.get(name.removesuffix("_id"), ids.new(PREFIXES[name.removesuffix("_id")]))
    if "example" in field.metadata:
        return field.metadata["example"]
    choices = [rule.choices for rule in field.validators if isinstance(rule, validate.OneOf)]
    if choices:
        return next(iter(choices[0]))
    if isinstance(field, fields.DateTime):
        return "2026-01-01T00:00:00Z"
    if isinstance(field, fields.List):
        return [sample_of(name, field.inner, known)]
    if isinstance(field, fields.Nested):
        return sample(field.schema, known)
    plain = {fields.Boolean: True, fields.Number: 1, fields.Mapping: {}}
    return next((value for kind, value in plain.items() if isinstance(field, kind)), "vip")


def owned_tables() -> list[str]:
    """The tables whose rows have an identifier and belong to a workspace."""
    return all_of(
        "SELECT table_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = ANY(%s)"
        " AND column_name IN ('id', 'workspace_id') GROUP BY table_name HAVING count(*) = 2 ORDER BY table_name",
        tables(),
    )


def noun_of(table: str) -> str:
    return re.sub(r"ie$", "y", table.removesuffix("s"))


@until_written
def everything() -> dict[str, str]:
    """A digest of each table, to show that something left no trace."""
    return {table: _digest(table, "true") for table in tables()}


@contextmanager
def no_trace() -> Iterator[None]:
    """Asserts that the block changes nothing in the database."""
    before = everything()
    yield
    changed = [table for table, digest in everything().items() if digest != before[table]]
    assert not changed, changed


@until_written
def belongings(workspace_id: str) -> dict[str, str]:
    """A digest of a workspace's rows in each table."""
    return {table: _digest(table, "workspace_id = %s", workspace_id) for table in owned_tables()}


def _digest(table: str, condition: str, *parameters: str) -> str:
    row = f"to_jsonb({table}) - ARRAY{VOLATILE.get(table, [''])}::text[]"
    return str(
        one(
            f"SELECT md5(coalesce(string_agg(({row})::text, ' ' ORDER BY ({row})::text), '')) FROM {table}"
            f" WHERE {condition}",
            *parameters,
        )
    )


def furnish(api: Api, email: str, nouns: set[str]) -> dict[str, str]:
    """Creates at least two resources of each noun; returns the identifier of one of each, by noun."""
    endpoint = api.endpoint("https://shop.example/hooks")
    other = api.contact(email=f"other.{email}")
    later = {"name": "Sale", "filter": VIP, "message": {"text": "Hello"}}
    later["send_at"] = (clock.now() + timedelta(days=9)).isoformat()  # until then it can be changed
    for number in range(2):
        saved_reply, macro = make_saved_reply(api, f"refund-{number}"), make_macro(api)
        contact = api.contact(email=f"{number}.{email}", tags=["vip"])
        sweep = api.done(api.post(f"webhooks/endpoints/{endpoint}/resend"))["resource"]["id"]
        replay = api.done(api.post("webhooks/replays", {"filter": {"statuses": ["failed"]}}))["resource"]["id"]
        segment = api.done(api.post("segments", {"name": "VIPs", "filter": VIP}))["resource"]["id"]
        broadcast = api.done(api.post("broadcasts", later))["resource"]["id"]
    api.endpoint("https://shop.example/second")
    automation = api.published()
    run = api.done(api.post(f"automations/{automation}/start", {"contact_id": contact["id"]}))["resource"]["id"]
    known = {"endpoint": endpoint, "contact": contact["id"], "sweep": sweep, "automation": automation, "run": run}
    known |= {
        "replay": replay,
        "other": other["id"],
        "saved_reply": saved_reply,
        "macro": macro,
        "broadcast": broadcast,
        "segment": segment,
    }
    if "message" in nouns:
        for _ in range(2):
            known["channel"] = make_channel(api.workspace_id)
            message = receive(api.workspace_id, contact["id"], known["channel"])
            known |= {"conversation": message.conversation_id, "message": message.id}
            known["note"] = add_note(api, message.conversation_id)
    if "channel" in nouns:
        chat = {"kind": "web_chat", "name": "Shop", "settings": {"origins": ["https://shop.example"]}}
        for _ in range(2):
            known["channel"] = api.done(api.post("channels", chat))["resource"]["id"]
    if "member" in nouns:
        for number in range(2):
            known["member"] = make_member(api.workspace_id, f"member-{number}.{email}", "agent")[1].id
    for table in owned_tables():
        noun = noun_of(table)
        if noun not in nouns:
            continue
        while one(f"SELECT count(*) FROM {table} WHERE workspace_id = %s", api.workspace_id) < 2:
            _insert(table, noun, api.workspace_id, known)
        known.setdefault(noun, one(f"SELECT max(id) FROM {table} WHERE workspace_id = %s", api.workspace_id))
    return known


def _insert(table: str, noun: str, workspace_id: str, known: dict[str, str]) -> None:
    """Inserts a row into any table, with values for the required columns made from their types."""
    row = {
        name: known.get(name.removesuffix("_id"), _value(kind))
        for name, kind in database.rows(
            "SELECT column_name, udt_name FROM information_schema.columns WHERE table_schema = 'public'"
            " AND table_name = %s AND is_nullable = 'NO' AND column_default IS NULL AND is_generated = 'NEVER'",
            (table,),
        )
    }
    row |= {"id": ids.new(PREFIXES.get(noun, noun[:3])), "workspace_id": workspace_id}
    database.rows(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", tuple(row.values())
    )


def as_sent(target: str) -> dict[str, str]:
    """The WSGI variables of a request target, which the test client would normalise."""
    path, _, query = target.partition("?")
    return {"PATH_INFO": unquote_to_bytes(path).decode("latin-1"), "QUERY_STRING": query.encode().decode("latin-1")}


def _value(kind: str) -> Any:
    """A value of that database type; numbers and times increase with each call."""
    number = next(_numbers)
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    counted = {"int4": number, "int8": number, "numeric": number, "timestamptz": moment, "date": moment}
    plain = {"bool": False, "json": "{}", "jsonb": "{}", "bytea": f"{number}".encode(), "_text": []}
    return (counted | plain).get(kind, "x")


def unknown() -> dict[str, str]:
    """Well-formed identifiers that do not exist, by noun."""
    return {noun: ids.new(prefix) for noun, prefix in PREFIXES.items()}


def sound(answer: TestResponse, about: object = "") -> TestResponse:
    """Asserts what holds for every response: a request id, a complete problem if refused, and no internals."""
    where = f"{about}: {answer.status_code} {answer.text[:300]}"
    assert answer.status_code < 500, where
    assert answer.status_code not in range(300, 400), where
    assert len(answer.headers.getlist("X-Request-Id")) == 1, where
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", answer.headers["X-Request-Id"]), where
    assert SECRET_KEY not in answer.text, where
    assert not TOKEN.search(answer.text + str(answer.headers)), where
    assert set(answer.headers.keys()) <= ALLOWED_HEADERS, where
    assert answer.status_code != 401 or answer.headers["WWW-Authenticate"].startswith("Bearer"), where
    assert answer.status_code != 405 or "OPTIONS" in answer.headers["Allow"], where
    if answer.status_code >= 400 and answer.data:
        assert answer.mimetype == "application/problem+json", where
        document = json.loads(answer.text)
        assert document["status"] == answer.status_code, where
        assert document["traceId"] == answer.headers["X-Request-Id"], where
        assert document["type"] == "about:blank" or document["type"].startswith("https://bellhop.test/problems/"), where
        assert isinstance(document["title"], str), where
        assert isinstance(document["detail"], str), where
        said = json.dumps([document["title"], document["detail"], [e["detail"] for e in document.get("errors", [])]])
        assert not INSIDE.search(said), where
    return answer


# Any other header in a response would have been injected by the caller.
ALLOWED_HEADERS = {
    *("Content-Type", "Content-Length", "X-Request-Id", "Location", "Preference-Applied", "Idempotent-Replayed"),
    *("WWW-Authenticate", "Allow", "Retry-After", "RateLimit", "RateLimit-Policy", "Cache-Control", "Vary"),
    *("Content-Security-Policy", "X-Content-Type-Options", "Content-Disposition", "ETag", "Last-Modified", "Date"),
    # Those of pages, to which paths outside the API lead.
    *("X-Frame-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy"),
    "Connection",
}


def said(answer: TestResponse) -> str:
    """Returns the status of an answer, with the slug and pointers of a problem; `whole` points at a body as a whole."""
    if answer.status_code < 400 or not answer.data:
        return str(answer.status_code)
    problem = json.loads(answer.text)
    slug = problem["type"].removeprefix("https://bellhop.test/problems/")
    errors = problem.get("errors", ())
    assert problem["title"] == PROBLEMS[slug].title
    assert all(each["detail"] for each in (problem, *errors))
    return " ".join([str(answer.status_code), slug, *sorted(each["pointer"] or "whole" for each in errors)])


def expect(outcome: str, answers: Iterable[tuple[object, TestResponse]]) -> None:
    """Asserts that `said` returns `outcome` for every answer, and that no request has left a trace.

    `answers` sends its requests while it is iterated over, so the database is compared once for all of them.
    """
    with no_trace():
        outcomes = [(str(asked), said(sound(answer, asked))) for asked, answer in answers]
    assert outcomes
    others = [(asked, other) for asked, other in outcomes if other != outcome]
    assert not others, f"Not {outcome}: {others}"


# Nouns whose resource in a scene has ended, so that writes to it are refused.
ENDED = {"replay", "job"}


@dataclass(frozen=True)
class Scene:
    """A workspace and another, each with some of everything, and the operations that may be tried on them."""

    ours: Api
    theirs: Api
    own: dict[str, str]
    foreign: dict[str, str]
    operations: list[Operation]

    @property
    def views(self) -> list[Operation]:
        return views(self.operations)

    @property
    def lists(self) -> list[Operation]:
        return lists(self.views)

    @property
    def reads(self) -> list[Operation]:
        return [operation for operation in self.views if operation.method == "GET"]

    @property
    def with_body(self) -> list[Operation]:
        return [operation for operation in self.views if operation.body is not None]

    @property
    def taking_json(self) -> list[Operation]:
        """The views that read a JSON object, or refuse one with any member."""
        return [operation for operation in self.views if operation.method != "GET" and not operation.takes_file]

    def named(self, name: str) -> Operation:
        """Returns the operation with this name, such as `POST /contacts`, at its long address."""
        return next(each for each in self.operations if name == f"{each.method} {each.collection}")

    def path(self, operation: Operation, known: dict[str, str] | None = None) -> str:
        return operation.path(self.ours.workspace_id, self.own if known is None else known)

    def body(self, operation: Operation) -> dict[str, Any]:
        return sample(operation.body, self.own) if operation.body else {}

    def ask(
        self, operation: Operation, path: str | None = None, query: str = "", caller: Api | None = None, **options: Any
    ) -> TestResponse:
        """Sends a request that would be accepted but for the arguments; `path` is sent as it is.

        Asserts that the answer is sound.
        """
        if operation.body and not options.keys() & {"data", "json"}:
            options.setdefault("body", self.body(operation))
        target = (path or self.path(operation)) + (query and f"?{query}")
        sent = as_sent(target) | options.pop("environ_overrides", {})
        return sound((caller or self.ours).ask(operation.method, "/", environ_overrides=sent, **options), operation)


def make_scene(app: Flask, client: FlaskClient) -> Scene:
    ours, theirs = found(client, "Ours"), found(client, "Theirs")
    every = operations(app)
    nouns = {noun for operation in every for noun in operation.nouns}
    own, foreign = furnish(ours, "ada@example.com", nouns), furnish(theirs, "eve@example.com", nouns)
    for api, known in ((ours, own), (theirs, foreign)):
        known["message"] = schedule(api, known["conversation"])  # only one that was not sent can be changed
    return Scene(ours, theirs, own, foreign, every)
