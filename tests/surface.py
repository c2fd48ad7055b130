"""The surface of the API, derived from the application: what each route takes, and what holds for every response.

New routes are found without being listed here.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote_to_bytes

import marshmallow
from flask import Flask
from marshmallow import fields, validate
from werkzeug.test import TestResponse

from app import database
from app.api.lists import PageQuery
from app.api.openapi.examples import PREFIXES
from app.lib import clock, ids
from tests.cast import Api, all_of, one, tables, until_written
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
VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}
SECRET_KEY = "tests-tests-"
# Internals that no response may reveal.
INSIDE = re.compile(
    r"Traceback|File \\?\"|\.py\b|SELECT |INSERT |UPDATE |psycopg|peewee|werkzeug|flask|marshmallow|sealed_secret"
    r"|Exception|gunicorn|DETAIL:|constraint"
)


# What stands in paths besides identifiers; else a tag.
_NAMES = {"version": "1"}


@dataclass(frozen=True)
class Operation:
    """A method of a route; `rule` in Flask's notation, `body` and `query` if it takes them."""

    method: str
    rule: str
    restriction: str | None
    body: marshmallow.Schema | None
    query: marshmallow.Schema | None

    def __str__(self) -> str:
        return f"{self.method} {self.rule}"

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
    """All operations that need a token. Deletions come last, the shortest paths at the very end."""
    found = [
        Operation(method, rule.rule, view.restriction, _takes(view, "json"), _takes(view, "query"))
        for rule in app.url_map.iter_rules()
        for view in [app.view_functions[rule.endpoint]]
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"})
        if hasattr(view, "restriction")
    ]
    return sorted(found, key=lambda operation: (operation.method == "DELETE", -len(operation.rule), str(operation)))


def lists(found: list[Operation]) -> list[Operation]:
    return [operation for operation in found if isinstance(operation.query, PageQuery)]


def _takes(view: Any, location: str) -> marshmallow.Schema | None:
    parameters = getattr(view, "_apidoc", {}).get("arguments", {}).get("parameters", ())
    return next((parameter["schema"]() for parameter in parameters if parameter["in"] == location), None)


def sample(schema: marshmallow.Schema, known: dict[str, str]) -> dict[str, Any]:
    """A body that should be valid for `schema`, with identifiers from `known`."""
    of_schema = type(schema).__name__
    if of_schema == "MergeBody":  # with another contact than that in the path
        known = known | {"contact": known.get("other", known.get("contact", ""))}
    wanted = {
        name: field
        for name, field in schema.load_fields.items()
        if field.required or name in OPTIONAL or f"{of_schema}.{name}" in OPTIONAL
    }
    return {name: sample_of(name, field, known) for name, field in wanted.items()}


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
    assert set(answer.headers.keys()) <= ALLOWED_HEADERS, where
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
