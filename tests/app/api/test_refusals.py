"""Every way in which the API refuses a request, for every route; each leaves no trace. More is in `test_attacks`."""

from __future__ import annotations

import itertools
import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.database import rows
from app.domain.people import tokens
from app.lib import clock, cursors, ids
from app.lib.token_format import new as new_token
from app.problems import PROBLEMS
from tests.billing import close_february
from tests.cast import Api, found, one, row_counts
from tests.later import schedule
from tests.talks import add_note, make_channel, make_macro, make_member, make_saved_reply, receive

RESTRICTIONS = ("contacts", "inbox", "automations", "billing", "webhooks")
HTTPS = "https://shop.example/hooks"
SALE = {"contact_id": "{contact}", "amount": "19.90", "currency": "EUR"}
BOOKING = {
    "contact_id": "{contact}",
    "title": "Haircut",
    "starts_at": "2026-11-24T12:00:00Z",
    "ends_at": "2026-11-24T12:45:00Z",
}
REPLAY: dict[str, Any] = {"filter": {"statuses": ["failed"]}}
BROADCAST: dict[str, Any] = {
    "name": "Sale",
    "filter": {"field": "contact.tags", "is": "contains", "value": "vip"},
    "message": {"text": "Hello"},
}
CHANNEL: dict[str, Any] = {"kind": "web_chat", "name": "Shop", "settings": {"origins": ["https://shop.example"]}}
SEGMENT: dict[str, Any] = {"name": "Regulars", "filter": {"field": "contact.tags", "is": "contains", "value": "vip"}}
AUTOMATION: dict[str, Any] = {"name": "Welcome", "definition": {"steps": []}}


def in_a_week() -> dict[str, str]:
    """Until then it can be changed."""
    return {"send_at": (clock.now() + timedelta(days=7)).isoformat()}


@dataclass(frozen=True)
class Route:
    """A request that would be accepted: `path` has the names of the scene's identifiers in braces, and so has
    `contact_id` in `body`.
    """

    method: str
    path: str
    restriction: str | None
    body: dict[str, Any] | None = None
    or_with: str | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def both(path: str, restriction: str | None, or_with: str | None = None) -> list[Route]:
    """A read that has two addresses."""
    return [Route("GET", each, restriction, None, or_with) for each in (path, f"/api/v1/{path}")]


LISTS = [
    *both("contacts", "contacts"),
    *both("sales", "contacts"),
    *both("bookings", "contacts"),
    *both("jobs", None),
    *both("webhooks/endpoints", "webhooks"),
    *both("webhooks/deliveries", "webhooks"),
    *both("webhooks/sweeps", "webhooks"),
    *both("webhooks/replays", "webhooks"),
    *both("broadcasts", "automations"),
    *both("broadcasts/{broadcast}/rows", "automations"),
    *both("webhooks/replays/{replay}/rows", "webhooks"),
    *both("events", "webhooks"),
    *both("webhooks/audit-log", "webhooks"),
    *both("invoices", "billing"),
    *both("imports/{import}/errors", "contacts"),
    *both("automations", "automations"),
    *both("automations/{automation}/versions", "automations"),
    *both("segments", "automations", "contacts"),
    *both("automations/{automation}/runs", "automations"),
    *both("runs", "automations"),
    *both("channels", "inbox"),
    *both("conversations", "inbox"),
    *both("conversations/{conversation}/messages", "inbox"),
    *both("conversations/{conversation}/notes", "inbox"),
    *both("messages", "inbox"),
    *both("saved-replies", "inbox"),
    *both("macros", "inbox"),
    *both("members", "inbox"),
]
CATALOGUE = both("webhooks/events", None)
BILLING = both("billing", "billing")
COUNTS = [*both("conversations/counts", "inbox"), *both("reports/conversations", "inbox")]
ITEMS = [
    Route("GET", "contacts/{contact}", "contacts"),
    Route("GET", "sales/{sale}", "contacts"),
    Route("GET", "bookings/{booking}", "contacts"),
    Route("GET", "imports/{import}", "contacts"),
    Route("GET", "jobs/{job}", "contacts"),
    Route("GET", "webhooks/endpoints/{endpoint}", "webhooks"),
    Route("GET", "webhooks/deliveries/{delivery}", "webhooks"),
    Route("GET", "webhooks/sweeps/{sweep}", "webhooks"),
    Route("GET", "webhooks/replays/{replay}", "webhooks"),
    Route("GET", "broadcasts/{broadcast}", "automations"),
    Route("GET", "events/{event}", "webhooks"),
    Route("GET", "invoices/{invoice}", "billing"),
    Route("GET", "automations/{automation}", "automations"),
    Route("GET", "automations/{automation}/versions/1", "automations"),
    Route("GET", "segments/{segment}", "automations", None, "contacts"),
    Route("GET", "automations/{automation}/counts", "automations"),
    Route("GET", "runs/{run}", "automations"),
    Route("GET", "channels/{channel}", "inbox"),
    Route("GET", "conversations/{conversation}", "inbox"),
    Route("GET", "messages/{message}", "inbox"),
    Route("GET", "notes/{note}", "inbox"),
    Route("GET", "members/{member}", "inbox"),
    Route("GET", "saved-replies/{saved_reply}", "inbox"),
    Route("GET", "conversations/{conversation}/saved-replies/{saved_reply}", "inbox"),
    Route("GET", "macros/{macro}", "inbox"),
    Route("GET", "conversations/{conversation}/presence", "inbox"),
]
REFERENCES = {"contact_id": "contact", "endpoint_id": "endpoint"}
NAMING_A_CONTACT = [
    Route("POST", "sales", "contacts", SALE),
    Route("POST", "bookings", "contacts", BOOKING),
    Route("POST", "automations/{automation}/start", "automations", {"contact_id": "{contact}"}),
    Route("POST", "messages", "inbox", {"contact_id": "{contact}", "text": "Hello"}),
]
MAKING = [
    Route("POST", "contacts", "contacts", {"email": "new@example.com"}),
    Route("POST", "webhooks/endpoints", "webhooks", {"address": HTTPS, "events": ["*"]}),
    Route("POST", "webhooks/replays", "webhooks", REPLAY),
    Route("POST", "broadcasts", "automations", BROADCAST),
    Route("PATCH", "broadcasts/{broadcast}", "automations", {"name": "Winter sale"}),
    Route("POST", "automations", "automations", AUTOMATION),
    Route("POST", "segments", "automations", SEGMENT),
    Route("POST", "channels", "inbox", CHANNEL),
    Route("POST", "conversations/{conversation}/messages", "inbox", {"text": "Hello"}),
    Route("POST", "conversations/{conversation}/notes", "inbox", {"text": "Called."}),
    Route("POST", "saved-replies", "inbox", {"shortcut": "new", "text": "Hello"}),
    Route("POST", "macros", "inbox", {"name": "Close", "actions": [{"kind": "close"}]}),
    *NAMING_A_CONTACT,
]
CHANGING = [
    Route("PATCH", "contacts/{contact}", "contacts", {"first_name": "Other"}),
    Route("DELETE", "contacts/{contact}", "contacts"),
    Route("POST", "contacts/{contact}/tags", "contacts", {"name": "new"}),
    Route("DELETE", "contacts/{contact}/tags/vip", "contacts"),
    Route("PATCH", "webhooks/endpoints/{endpoint}", "webhooks", {"description": "Other"}),
    Route("DELETE", "webhooks/endpoints/{endpoint}", "webhooks"),
    Route("POST", "webhooks/endpoints/{endpoint}/rotate-secret", "webhooks"),
    Route("POST", "webhooks/endpoints/{endpoint}/test", "webhooks", {"kind": "contact.created"}),
    Route("POST", "webhooks/endpoints/{endpoint}/enable", "webhooks"),
    Route("POST", "webhooks/endpoints/{endpoint}/resend", "webhooks"),
    Route("POST", "webhooks/deliveries/{delivery}/resend", "webhooks"),
    Route("POST", "events/{event}/resend", "webhooks", {"endpoint_id": "{endpoint}"}),
    Route("POST", "webhooks/replays/{replay}/pause", "webhooks"),
    Route("POST", "webhooks/replays/{replay}/continue", "webhooks"),
    Route("POST", "webhooks/replays/{replay}/abort", "webhooks"),
    Route("POST", "broadcasts/{broadcast}/pause", "automations"),
    Route("POST", "broadcasts/{broadcast}/continue", "automations"),
    Route("POST", "broadcasts/{broadcast}/abort", "automations"),
    Route("POST", "jobs/{job}/replay", "contacts"),
    Route("POST", "jobs/{job}/discard", "contacts", {"reason": "It was a test."}),
    Route("POST", "bookings/{booking}/cancel", "contacts"),
    Route("PATCH", "automations/{automation}", "automations", {"name": "Other"}),
    Route("DELETE", "automations/{automation}", "automations"),
    Route("POST", "automations/{automation}/publish", "automations"),
    Route("POST", "automations/{automation}/unpublish", "automations"),
    Route("POST", "automations/{automation}/restore", "automations", {"version": 1}),
    Route("POST", "automations/{automation}/pause", "automations"),
    Route("POST", "automations/{automation}/resume", "automations"),
    Route("POST", "automations/{automation}/cancel-runs", "automations"),
    Route("POST", "automations/{automation}/move-runs", "automations", {"from_version": 1}),
    Route("PATCH", "segments/{segment}", "automations", {"name": "Other"}),
    Route("DELETE", "segments/{segment}", "automations"),
    Route("POST", "runs/{run}/cancel", "automations"),
    Route("POST", "runs/{run}/resume", "automations"),
    Route("POST", "runs/{run}/replay", "automations"),
    Route("PATCH", "channels/{channel}", "inbox", {"name": "Other"}),
    Route("DELETE", "channels/{channel}", "inbox"),
    Route("POST", "channels/{channel}/reauthorize", "inbox"),
    Route("PATCH", "conversations/{conversation}", "inbox", {"status": "closed"}),
    Route("PATCH", "members/{member}", "inbox", {"availability": "away"}),
    Route("PATCH", "messages/{message}", "inbox", {"text": "Hello"}),
    Route("DELETE", "messages/{message}", "inbox"),
    Route("POST", "messages/{message}/resend", "inbox"),
    Route("DELETE", "notes/{note}", "inbox"),
    Route("PATCH", "saved-replies/{saved_reply}", "inbox", {"text": "Other"}),
    Route("DELETE", "saved-replies/{saved_reply}", "inbox"),
    Route("PATCH", "macros/{macro}", "inbox", {"name": "Other"}),
    Route("DELETE", "macros/{macro}", "inbox"),
    Route("POST", "conversations/{conversation}/macros/{macro}", "inbox"),
]
# Answers in pieces, and takes other bodies than JSON.
EXPORT = Route("GET", "contacts/{contact}/export", "contacts")
IMPORT = Route("POST", "contacts/import", "contacts")
# Its body names another contact than its path.
MERGE = Route("POST", "contacts/{contact}/merge", "contacts", {"contact_id": "con_01kaj5bd40e6rr3f5y2kq0w9xz"})
UPLOAD = Route("POST", "uploads", "inbox")
ME = Route("GET", "/api/v1/auth/me", None)
# No jobs, and leave no trace.
SIGNS = [Route("POST", f"conversations/{{conversation}}/{name}", "inbox") for name in ("typing", "presence")]
# A read, although it has a body.
SIMULATION = Route("POST", "automations/{automation}/simulate", "automations", {"variables": {}})
COUNT = Route("POST", "segments/count", "automations", {"filter": SEGMENT["filter"]}, "contacts")
# Its path is that of the workspace itself: see `test_workspace`.
WORKSPACE = {("GET", "/api/v1/workspaces/*"), ("PATCH", "/api/v1/workspaces/*")}
WRITES = [*MAKING, *CHANGING]
WITH_BODY = [route for route in WRITES if route.body is not None]
WITHOUT_BODY = [route for route in WRITES if route.body is None]
WITH_IDENTIFIER = [*ITEMS, EXPORT, SIMULATION, *SIGNS, *CHANGING]
EVERY = [ME, *LISTS, *CATALOGUE, *BILLING, *COUNTS, *ITEMS, EXPORT, IMPORT, MERGE, UPLOAD, *SIGNS, SIMULATION]
EVERY += [COUNT, *WRITES]
IN_WORKSPACE = [route for route in EVERY if not route.path.startswith("/")]


@dataclass(frozen=True)
class Scene:
    """A workspace with one of everything, and another with the same."""

    ours: Api
    theirs: Api
    own: dict[str, str]
    foreign: dict[str, str]
    restricted: dict[tuple[str, ...], Api] = field(default_factory=dict)

    def restricted_to(self, *restrictions: str) -> Api:
        """A caller of our workspace with these restrictions. Its token is always the same, so it is issued once."""
        if restrictions not in self.restricted:
            self.restricted[restrictions] = self.ours.restricted_to(*restrictions)
        return self.restricted[restrictions]

    def ask(self, route: Route, caller: Api | None = None, **options: Any) -> TestResponse:
        body = options.setdefault("body", route.body)
        if body:
            named = {name: self.own[noun] for name, noun in REFERENCES.items() if body.get(name) == f"{{{noun}}}"}
            options["body"] = body | named
        path = (options.pop("path", None) or route.path).format(**self.own)
        return (caller or self.ours).ask(route.method, path, **options)


def failed_job(api: Api) -> str:
    """A write that failed by a fault of ours."""
    job_id = str(api.done(api.post("contacts", {"external_id": "failed"}))["id"])
    rows("UPDATE jobs SET status = 'failed', payload = '{}' WHERE id = %s", (job_id,))
    return job_id


def furnish(api: Api, email: str) -> dict[str, str]:
    endpoint = api.endpoint(HTTPS)
    job = api.done(api.post("contacts", {"email": email, "tags": ["vip"]}))
    contact = job["resource"]["id"]
    automation = api.published()
    run = api.done(api.post(f"automations/{automation}/start", {"contact_id": contact}))["resource"]["id"]
    channel = make_channel(api.workspace_id)
    message = receive(api.workspace_id, contact, channel)
    return {
        "channel": channel,
        "conversation": message.conversation_id,
        "message": schedule(api, message.conversation_id),
        "note": add_note(api, message.conversation_id),
        "member": make_member(api.workspace_id),
        "saved_reply": make_saved_reply(api),
        "macro": make_macro(api),
        "automation": automation,
        "segment": api.done(api.post("segments", SEGMENT))["resource"]["id"],
        "run": run,
        "endpoint": endpoint,
        "job": failed_job(api),
        "contact": contact,
        "sale": api.sale(contact)["id"],
        "booking": api.booking(contact)["id"],
        "delivery": api.get("webhooks/deliveries").json["data"][0]["id"],
        "event": api.get("events").json["data"][0]["id"],
        "sweep": api.done(api.post(f"webhooks/endpoints/{endpoint}/resend"))["resource"]["id"],
        "replay": api.done(api.post("webhooks/replays", REPLAY))["resource"]["id"],
        "broadcast": api.done(api.post("broadcasts", BROADCAST | in_a_week()))["resource"]["id"],
        "invoice": api.get("invoices").json["data"][0]["id"],
        "import": api.post("contacts/import", data=b"{}", content_type="application/jsonl").json["data"]["resource"][
            "id"
        ],
    }


@pytest.fixture(scope="module")
def scene(empty_for_module: None, client: FlaskClient) -> Scene:
    ours, theirs = found(client, "Ours"), found(client, "Theirs")
    close_february(ours.workspace_id, theirs.workspace_id)
    return Scene(ours, theirs, furnish(ours, "ada@example.com"), furnish(theirs, "eve@example.com"))


def refusal(scene: Scene, route: Route, status: int, slug: str, **options: Any) -> TestResponse:
    """The response to a request that must be refused in this way, with a complete problem and without a trace."""
    headers = {"Idempotency-Key": str(uuid.uuid4()), "Prefer": "wait=1"} | options.pop("headers", {})
    before = row_counts()

    answer = scene.ask(route, headers=headers, **options)

    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json"), answer.text
    document = json.loads(answer.text)
    assert document["type"] == f"https://bellhop.test/problems/{slug}"
    assert (document["title"], document["status"]) == (PROBLEMS[slug].title, status)
    assert document["detail"]
    assert document["traceId"] == answer.headers["X-Request-Id"]
    assert status != 401 or answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert row_counts() == before
    assert one("SELECT count(*) FROM idempotency_keys WHERE key = %s", key_of(headers)) == 0
    return answer


def key_of(headers: dict[str, str]) -> str:
    """The key as it would be kept; any other one for a header that is no key."""
    given = headers["Idempotency-Key"].strip('"')
    return given if re.fullmatch(r"[0-9a-fA-F-]{36}", given) else str(uuid.uuid4())


def pointers(answer: TestResponse) -> list[str]:
    errors = json.loads(answer.text)["errors"]
    assert all(error["detail"] for error in errors)
    return [error["pointer"] for error in errors]


def named(routes: list[Route]) -> Any:
    return pytest.mark.parametrize("route", routes, ids=str)


def crossed(routes: list[Route], name: str, values: Sequence[Any]) -> Any:
    """Every route with one of the values and every value on one of the routes: one hook decides for all routes."""
    pairs = zip(itertools.cycle(routes), itertools.cycle(values), strict=False)
    return pytest.mark.parametrize(
        ("route", name), list(itertools.islice(pairs, max(len(routes), len(values)))), ids=_shortly
    )


def _shortly(value: object) -> str:
    return str(value)[:60]


def test_the_tables_above_have_every_route(app: Flask) -> None:
    ours = {
        (method, re.sub(r"<(?:path:)?\w+>", "*", rule.rule))
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/api/v1/")
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    shown = {
        (route.method, re.sub(r"\{\w+\}|(?<=tags/)vip|(?<=versions/)1", "*", found_at(route.path))) for route in EVERY
    }
    short = {(method, path.replace("/workspaces/*", "", 1)) for method, path in shown}

    assert ours - {("GET", "/api/v1/openapi.json")} - WORKSPACE == shown | short


def found_at(path: str) -> str:
    return path if path.startswith("/") else f"/api/v1/workspaces/*/{path}"


# The reason in `detail`


@pytest.mark.parametrize(
    ("query", "body", "headers", "detail"),
    [
        ("", {"email": "x"}, {}, "email: This is not an e-mail address: An email address must have an @-sign."),
        ("", {"email": "a@example.com", "size": 1}, {}, "size: Unknown field."),
        ("", {}, {}, "Give at least one of external_id, email, phone."),
        ("", {"size": 1, "opted_out": 2}, {}, "opted_out: Not a valid boolean … and 1 more fault"),
        ("", {"size": 1, "of": 2, "opted_out": 2}, {}, "opted_out: Not a valid boolean … and 2 more faults"),
        ("?size=1", {"email": "a@example.com"}, {}, "size: Unknown field."),
        (
            "",
            {"email": "a@example.com"},
            {"Idempotency-Key": "x"},
            "Idempotency-Key: The Idempotency-Key header must be a UUIDv4, new for each operation.",
        ),
    ],
)
def test_the_detail_is_the_first_fault_and_counts_the_others(
    scene: Scene, query: str, body: dict[str, Any], headers: dict[str, str], detail: str
) -> None:
    refused = scene.ours.post(f"contacts{query}", body, headers=headers).get_json(force=True)

    assert refused["detail"] == detail
    assert refused["errors"][0]["detail"].rstrip(".") in detail


def test_the_detail_names_a_query_parameter(scene: Scene) -> None:
    refused = scene.ours.get("contacts?limit=0&updated_since=now").get_json(force=True)

    assert refused["detail"] == "limit: It must be from 1 to 100 … and 1 more fault"


# 401


def altered(token: str) -> str:
    return token[:10] + ("a" if token[10] != "a" else "b") + token[11:]


@named(EVERY)
def test_without_a_token_there_is_nothing(scene: Scene, route: Route) -> None:
    refusal(scene, route, 401, "unauthenticated", headers={"Authorization": ""})


@named(EVERY)
def test_another_scheme_is_no_token(scene: Scene, route: Route) -> None:
    refusal(scene, route, 401, "unauthenticated", headers={"Authorization": f"Basic {scene.ours.token}"})


@crossed(EVERY, "text", ["", "bhp_", "bhp_short", "x" * 40, "bhp_" + "é" * 36, "bhp_" + "0" * 100_000])
def test_a_malformed_token_is_refused(scene: Scene, route: Route, text: str) -> None:
    refusal(
        scene, route, 401, "unauthenticated", headers={"Authorization": f"Bearer {text}".encode().decode("latin-1")}
    )


@named(EVERY)
def test_a_token_with_one_character_altered_is_refused(scene: Scene, route: Route) -> None:
    refusal(scene, route, 401, "unauthenticated", caller=scene.ours.with_token(altered(scene.ours.token)))


@named(EVERY)
def test_a_token_that_was_never_issued_is_refused(scene: Scene, route: Route) -> None:
    refusal(scene, route, 401, "unauthenticated", caller=scene.ours.with_token(new_token()))


@named(EVERY)
def test_an_expired_token_is_refused(scene: Scene, route: Route) -> None:
    _, token = tokens.issue(scene.ours.workspace_id, "Short", expires_in_seconds=1)

    with clock.moved_by(seconds=2):
        refusal(scene, route, 401, "unauthenticated", caller=scene.ours.with_token(token))


@named(EVERY)
def test_a_revoked_token_is_refused(scene: Scene, route: Route) -> None:
    token_id, token = tokens.issue(scene.ours.workspace_id, "Revoked")
    tokens.revoke(token_id)

    refusal(scene, route, 401, "unauthenticated", caller=scene.ours.with_token(token))


def test_the_refusal_of_a_token_does_not_repeat_it(scene: Scene) -> None:
    wrong = altered(scene.ours.token)

    answer = refusal(scene, ME, 401, "unauthenticated", caller=scene.ours.with_token(wrong))

    assert wrong not in answer.text + str(answer.headers)


# 403


def another(number: int, route: Route) -> str:
    """A restriction other than the route's; over the numbers, all of them."""
    others = others_than(route)
    return others[number % len(others)]


def others_than(route: Route) -> list[str]:
    return [each for each in RESTRICTIONS if each not in (route.restriction, route.or_with)]


NARROW = [(route, another(number, route)) for number, route in enumerate(EVERY) if route.restriction is not None]


@pytest.mark.parametrize(("route", "restriction"), NARROW, ids=str)
def test_a_token_that_lacks_the_restriction_is_refused(scene: Scene, route: Route, restriction: str) -> None:
    caller = scene.restricted_to(restriction)

    answer = refusal(scene, route, 403, "insufficient-scope", caller=caller)

    assert str(route.restriction) in json.loads(answer.text)["detail"]


@named([route for route in EVERY if route.restriction is not None])
def test_a_token_with_all_the_other_restrictions_is_refused(scene: Scene, route: Route) -> None:
    refusal(scene, route, 403, "insufficient-scope", caller=scene.restricted_to(*others_than(route)))


@named([route for route in EVERY if route.or_with is not None])
def test_a_token_with_the_other_restriction_of_a_route_is_let_in(scene: Scene, route: Route) -> None:
    assert scene.ask(route, scene.restricted_to(str(route.or_with))).status_code == 200


@named([*LISTS, *CATALOGUE, *BILLING, *COUNTS, *ITEMS, ME])
def test_a_token_with_the_restriction_alone_is_let_in(scene: Scene, route: Route) -> None:
    caller = scene.restricted_to(route.restriction or "billing")

    assert scene.ask(route, caller).status_code == 200


@pytest.mark.parametrize("at", ["jobs", "/api/v1/jobs"])
def test_jobs_of_a_kind_that_the_token_may_not_see_are_refused(scene: Scene, at: str) -> None:
    route = Route("GET", f"{at}?kind=contacts.upsert", "contacts")

    refusal(scene, route, 403, "insufficient-scope", caller=scene.restricted_to("webhooks"))


# 404


@crossed(IN_WORKSPACE, "workspace", ["ws_01kaj5bd40e6rr3f5y2kq0w9xz", "x", "%20", "con_01kaj5bd40e6rr3f5y2kq0w9xz"])
def test_no_workspace_in_the_path_is_not_found(scene: Scene, route: Route, workspace: str) -> None:
    refusal(scene, route, 404, "not-found", path=f"/api/v1/workspaces/{workspace}/{route.path}")


@named([route for route in IN_WORKSPACE if route.restriction is not None])
def test_another_workspace_is_not_found_whatever_the_token_may(scene: Scene, route: Route) -> None:
    path = f"/api/v1/workspaces/{scene.theirs.workspace_id}/{route.path}"

    refusal(scene, route, 404, "not-found", path=path, caller=scene.restricted_to("billing"))


@named(WITH_IDENTIFIER)
def test_an_identifier_of_the_wrong_prefix_is_not_found(scene: Scene, route: Route) -> None:
    wrong = {name: "tok" + own[3:] for name, own in scene.own.items()}

    refusal(scene, route, 404, "not-found", path=route.path.format(**wrong))


@crossed(WITH_IDENTIFIER, "text", ["x", "1", "%00", "a%00b", "con_", "'", "%F0%9F%92%A9", "x" * 5000, "null"])
def test_what_is_no_identifier_is_not_found(scene: Scene, route: Route, text: str) -> None:
    refusal(scene, route, 404, "not-found", path=re.sub(r"\{\w+\}", text, route.path))


@named(WITH_IDENTIFIER)
def test_an_identifier_in_capitals_is_not_found(scene: Scene, route: Route) -> None:
    capitals = {name: own.upper() for name, own in scene.own.items()}

    refusal(scene, route, 404, "not-found", path=route.path.format(**capitals))


@pytest.mark.parametrize(
    "path", ["/", "/api", "/api/v1", "/api/v2/contacts", "/api/v1/nothing", "nothing", "contacts/"]
)
def test_an_unknown_path_is_not_found(scene: Scene, path: str) -> None:
    refusal(scene, Route("PATCH", path + "/x/y/z", None), 404, "not-found")


# 405


ACTIONS = ("publish", "unpublish", "restore", "pause", "resume", "start", "simulate", "cancel-runs", "move-runs")
BELOW_A_WORKSPACE = [
    ("contacts", "GET POST"),
    ("contacts/import", "POST"),
    ("imports/{import}", "GET"),
    ("imports/{import}/errors", "GET"),
    ("contacts/{contact}", "DELETE GET PATCH"),
    ("contacts/{contact}/export", "GET"),
    ("contacts/{contact}/merge", "POST"),
    ("contacts/{contact}/tags", "POST"),
    ("contacts/{contact}/tags/vip", "DELETE"),
    ("sales", "GET POST"),
    ("sales/{sale}", "GET"),
    ("bookings", "GET POST"),
    ("bookings/{booking}", "GET"),
    ("bookings/{booking}/cancel", "POST"),
    ("jobs", "GET"),
    ("jobs/{job}", "GET"),
    ("jobs/{job}/replay", "POST"),
    ("jobs/{job}/discard", "POST"),
    ("webhooks/events", "GET"),
    ("webhooks/endpoints", "GET POST"),
    ("webhooks/endpoints/{endpoint}", "DELETE GET PATCH"),
    ("webhooks/endpoints/{endpoint}/rotate-secret", "POST"),
    ("webhooks/endpoints/{endpoint}/test", "POST"),
    ("webhooks/deliveries", "GET"),
    ("webhooks/endpoints/{endpoint}/enable", "POST"),
    ("webhooks/endpoints/{endpoint}/resend", "POST"),
    ("webhooks/deliveries/{delivery}", "GET"),
    ("webhooks/deliveries/{delivery}/resend", "POST"),
    ("webhooks/sweeps", "GET"),
    ("webhooks/sweeps/{sweep}", "GET"),
    ("webhooks/replays", "GET POST"),
    ("webhooks/replays/{replay}", "GET"),
    ("webhooks/replays/{replay}/rows", "GET"),
    ("webhooks/replays/{replay}/pause", "POST"),
    ("webhooks/replays/{replay}/continue", "POST"),
    ("webhooks/replays/{replay}/abort", "POST"),
    ("broadcasts", "GET POST"),
    ("broadcasts/{broadcast}", "GET PATCH"),
    ("broadcasts/{broadcast}/rows", "GET"),
    ("broadcasts/{broadcast}/pause", "POST"),
    ("broadcasts/{broadcast}/continue", "POST"),
    ("broadcasts/{broadcast}/abort", "POST"),
    ("webhooks/audit-log", "GET"),
    ("events", "GET"),
    ("events/{event}", "GET"),
    ("events/{event}/resend", "POST"),
    ("invoices", "GET"),
    ("invoices/{invoice}", "GET"),
    ("billing", "GET"),
    ("automations", "GET POST"),
    ("automations/{automation}", "DELETE GET PATCH"),
    ("automations/{automation}/versions", "GET"),
    ("automations/{automation}/versions/1", "GET"),
    ("automations/{automation}/counts", "GET"),
    ("automations/{automation}/runs", "GET"),
    *((f"automations/{{automation}}/{action}", "POST") for action in ACTIONS),
    ("runs", "GET"),
    ("runs/{run}", "GET"),
    *((f"runs/{{run}}/{action}", "POST") for action in ("cancel", "resume", "replay")),
    ("channels", "GET POST"),
    ("channels/{channel}", "DELETE GET PATCH"),
    ("channels/{channel}/reauthorize", "POST"),
    ("conversations", "GET"),
    ("conversations/counts", "GET"),
    ("conversations/{conversation}", "GET PATCH"),
    ("conversations/{conversation}/messages", "GET POST"),
    ("conversations/{conversation}/presence", "GET POST"),
    ("messages", "GET POST"),
    ("messages/{message}", "DELETE GET PATCH"),
    ("messages/{message}/resend", "POST"),
    ("members", "GET"),
    ("members/{member}", "GET PATCH"),
    ("uploads", "POST"),
    ("reports/conversations", "GET"),
]
ADDRESSES = [
    ("/api/v1/auth/me", "GET"),
    *BELOW_A_WORKSPACE,
    *((f"/api/v1/{path}", allowed) for path, allowed in BELOW_A_WORKSPACE),
]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "TRACE")
WRONG_METHODS = [
    (Route(wrong[number % len(wrong)], path, None), allowed)
    for number, (path, allowed) in enumerate(ADDRESSES)
    for wrong in [[method for method in METHODS if method not in allowed.split()]]
]


@pytest.mark.parametrize(("route", "allowed"), WRONG_METHODS, ids=str)
def test_the_response_to_a_wrong_method_lists_the_right_ones(scene: Scene, route: Route, allowed: str) -> None:
    answer = refusal(scene, route, 405, "method-not-allowed")

    told = set(answer.headers["Allow"].split(", "))
    assert told - {"HEAD", "OPTIONS"} == set(allowed.split())
    assert "OPTIONS" in told


@pytest.mark.parametrize(("path", "allowed"), ADDRESSES, ids=str)
def test_options_lists_the_methods(scene: Scene, path: str, allowed: str) -> None:
    answer = scene.ask(Route("OPTIONS", path, None))

    assert (answer.status_code, answer.data) == (200, b"")
    assert "Content-Type" not in answer.headers
    assert set(answer.headers["Allow"].split(", ")) - {"HEAD", "OPTIONS"} == set(allowed.split())


@named([ME, *LISTS, *CATALOGUE, *BILLING, *COUNTS, *ITEMS])
def test_head_is_get_without_the_body(scene: Scene, route: Route) -> None:
    answer = scene.ask(Route("HEAD", route.path, None))

    assert (answer.status_code, answer.data) == (200, b"")
    assert answer.mimetype == "application/json"
    assert int(answer.headers["Content-Length"]) > 0


@named([*LISTS, *ITEMS])
def test_head_is_refused_like_get(scene: Scene, route: Route) -> None:
    answer = scene.ask(Route("HEAD", route.path, None), headers={"Authorization": "Bearer wrong"})

    assert (answer.status_code, answer.data) == (401, b"")


# 400, 413, 415


@crossed(
    WRITES,
    "text",
    [b"{", b'{"email": }', b'{"email": NaN}', b"\xff\xfe", b'{"a": "\xc3"}', b"[" * 100_000, b"{} {}", b"nothing"],
)
def test_broken_json_is_malformed(scene: Scene, route: Route, text: bytes) -> None:
    refusal(scene, route, 400, "malformed-request", body=None, data=text, content_type="application/json")


@named(WRITES)
def test_a_body_above_256_kib_is_too_large(scene: Scene, route: Route) -> None:
    text = json.dumps({"first_name": "x" * 256 * 1024})

    refusal(scene, route, 413, "payload-too-large", body=None, data=text, content_type="application/json")


@named(WITH_BODY)
def test_a_body_of_256_kib_is_not_too_large(scene: Scene, route: Route) -> None:
    text = json.dumps({"unknown": ""})
    text = text[:-2] + "x" * (256 * 1024 - len(text)) + text[-2:]
    assert len(text) == 256 * 1024

    answer = refusal(scene, route, 422, "validation-failed", body=None, data=text, content_type="application/json")

    assert "/unknown" in pointers(answer)


# 422: bodies


@crossed(WITH_BODY, "text", ["", "[]", "1", "null", '"text"', "[{}]"])
def test_a_body_that_is_no_object_is_invalid_as_a_whole(scene: Scene, route: Route, text: str) -> None:
    answer = refusal(scene, route, 422, "validation-failed", body=None, data=text, content_type="application/json")

    assert pointers(answer) == [""]


@named(WITH_BODY)
def test_a_field_that_is_not_known_is_pointed_at(scene: Scene, route: Route) -> None:
    body = (route.body or {}) | {"id": ids.new("con"), "a/b~c": 1}

    answer = refusal(scene, route, 422, "validation-failed", body=body)

    assert sorted(pointers(answer)) == ["/a~1b~0c", "/id"]


@named(WITHOUT_BODY)
def test_a_body_where_none_is_expected_is_pointed_at(scene: Scene, route: Route) -> None:
    answer = refusal(scene, route, 422, "validation-failed", body={"force": True})

    assert pointers(answer) == ["/force"]


@named([*WRITES, *ITEMS, EXPORT, *CATALOGUE, ME])
def test_a_query_where_none_is_expected_is_pointed_at(scene: Scene, route: Route) -> None:
    answer = refusal(scene, route, 422, "validation-failed", path=f"{route.path}?dry_run=1")

    assert pointers(answer) == ["/dry_run"]


CONTACT_FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"email": "no address"}, ["/email"]),
    ({"email": "a@b@example.com"}, ["/email"]),
    ({"email": "a\r\nBcc: x@example.com"}, ["/email"]),
    ({"email": "x" * 250 + "@example.com"}, ["/email"]),
    ({"email": 1}, ["/email"]),
    ({"email": ["a@example.com"]}, ["/email"]),
    ({"email": "nul\0@example.com"}, ["/email"]),
    ({"phone": "030123456"}, ["/phone"]),
    ({"phone": "+1"}, ["/phone"]),
    ({"phone": "+49" + "1" * 30}, ["/phone"]),
    ({"phone": "call me"}, ["/phone"]),
    ({"phone": 4930123456}, ["/phone"]),
    ({"external_id": "x" * 256}, ["/external_id"]),
    ({"external_id": 17}, ["/external_id"]),
    ({"external_id": "nul\0"}, ["/external_id"]),
    ({"first_name": "x" * 256}, ["/first_name"]),
    ({"first_name": {"a": 1}}, ["/first_name"]),
    ({"first_name": "nul\0"}, ["/first_name"]),
    ({"last_name": False}, ["/last_name"]),
    ({"locale": "english"}, ["/locale"]),
    ({"locale": "en-"}, ["/locale"]),
    ({"timezone": "Europe/Atlantis"}, ["/timezone"]),
    ({"timezone": "../../etc/passwd"}, ["/timezone"]),
    ({"tags": "vip"}, ["/tags"]),
    ({"tags": ["ok", ""]}, ["/tags/1"]),
    ({"tags": ["   "]}, ["/tags/0"]),
    ({"tags": ["x" * 101]}, ["/tags/0"]),
    ({"tags": ["a\nb"]}, ["/tags/0"]),
    ({"tags": ["nul\0"]}, ["/tags/0"]),
    ({"tags": [None]}, ["/tags/0"]),
    ({"tags": ["t"] * 101}, ["/tags"]),
    ({"tags": None}, ["/tags"]),
    ({"custom_fields": []}, ["/custom_fields"]),
    ({"custom_fields": None}, ["/custom_fields"]),
    ({"custom_fields": {"a": []}}, ["/custom_fields/a"]),
    ({"custom_fields": {"a": {"b": 1}}}, ["/custom_fields/a"]),
    ({"custom_fields": {"a/b": "x" * 4097}}, ["/custom_fields/a~1b"]),
    ({"custom_fields": {"a": "nul\0"}}, ["/custom_fields/a"]),
    ({"custom_fields": {"a": 2**53 + 1}}, ["/custom_fields/a"]),
    ({"custom_fields": {"a": -1e300}}, ["/custom_fields/a"]),
    ({"custom_fields": {"": 1}}, ["/custom_fields/"]),
    ({"custom_fields": {str(number): 1 for number in range(101)}}, ["/custom_fields"]),
    ({"opted_out": "yes"}, ["/opted_out"]),
    ({"opted_out": 1}, ["/opted_out"]),
    ({"opted_out": None}, ["/opted_out"]),
    ({"email": "x", "phone": "y", "timezone": "z"}, ["/email", "/phone", "/timezone"]),
]


@pytest.mark.parametrize("route", [MAKING[0], CHANGING[0]], ids=str)
@pytest.mark.parametrize(("fields", "at"), CONTACT_FAULTS, ids=lambda value: str(value)[:60])
def test_a_wrong_field_of_a_contact_is_pointed_at(
    scene: Scene, route: Route, fields: dict[str, Any], at: list[str]
) -> None:
    answer = refusal(scene, route, 422, "validation-failed", body={"external_id": "fine"} | fields)

    assert sorted(pointers(answer)) == at


@pytest.mark.parametrize("raw", [b'{"external_id": "\\ud800"}', b'{"external_id": "a\\u0000"}'])
@pytest.mark.parametrize("route", [MAKING[0], CHANGING[0]], ids=str)
def test_text_that_cannot_be_stored_is_pointed_at(scene: Scene, route: Route, raw: bytes) -> None:
    answer = refusal(scene, route, 422, "validation-failed", body=None, data=raw, content_type="application/json")

    assert pointers(answer) == ["/external_id"]


@pytest.mark.parametrize("name", ["external_id", "email", "phone"])
def test_a_patch_with_an_empty_identifier_is_pointed_at(scene: Scene, name: str) -> None:
    answer = refusal(scene, CHANGING[0], 422, "validation-failed", body={name: ""})

    assert pointers(answer) == [f"/{name}"]


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"first_name": "Ada"}, {"email": None}, {"external_id": None, "email": None, "phone": None}),
        *({"email": ""}, {"external_id": "", "email": None, "phone": ""}),
    ],
    ids=str,
)
def test_an_upsert_without_an_identifier_is_invalid_as_a_whole(scene: Scene, body: dict[str, Any]) -> None:
    answer = refusal(scene, MAKING[0], 422, "validation-failed", body=body)

    assert pointers(answer) == [""]


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"name": None}, "/name"),
        ({"name": 1}, "/name"),
        ({"name": "a\tb"}, "/name"),
    ],
    ids=str,
)
def test_a_wrong_tag_is_pointed_at(scene: Scene, body: dict[str, Any], at: str) -> None:
    answer = refusal(scene, CHANGING[2], 422, "validation-failed", body=body)

    assert pointers(answer) == [at]


ENDPOINT_FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"address": "http://shop.example/hooks"}, ["/address"]),
    ({"address": "ftp://shop.example"}, ["/address"]),
    ({"address": "shop.example"}, ["/address"]),
    ({"address": "https://"}, ["/address"]),
    ({"address": "https://user@shop.example/"}, ["/address"]),
    ({"address": "https://user:password@shop.example/"}, ["/address"]),
    ({"address": "https://10.0.0.1/"}, ["/address"]),
    ({"address": "https://192.168.1.1:8443/"}, ["/address"]),
    ({"address": "https://169.254.169.254/latest/meta-data"}, ["/address"]),
    ({"address": "https://[::ffff:10.0.0.1]/"}, ["/address"]),
    ({"address": "https://[fe80::1]/"}, ["/address"]),
    ({"address": "https://0x0a000001/"}, ["/address"]),
    ({"address": "https://shop.example/" + "x" * 2048}, ["/address"]),
    ({"address": "https://shop.example:0/"}, ["/address"]),
    ({"address": "https://shop.example:99999/"}, ["/address"]),
    ({"address": "https://shop.example/nul\0"}, ["/address"]),
    ({"address": None}, ["/address"]),
    ({"address": 1}, ["/address"]),
    ({"events": []}, ["/events"]),
    ({"events": "*"}, ["/events"]),
    ({"events": None}, ["/events"]),
    ({"events": ["contact.created", "contact.exploded"]}, ["/events/1"]),
    ({"events": ["contact.*"]}, ["/events/0"]),
    ({"events": [1]}, ["/events/0"]),
    ({"events": ["*"] * 101}, ["/events"]),
    ({"description": "x" * 501}, ["/description"]),
    ({"description": 1}, ["/description"]),
    ({"description": "nul\0"}, ["/description"]),
    ({"state": "active"}, ["/state"]),
    ({"secret": "whsec_mine"}, ["/secret"]),
    ({"sealed_secret": "x"}, ["/sealed_secret"]),
    ({"address": "http://x", "events": []}, ["/address", "/events"]),
]


@pytest.mark.parametrize("route", [MAKING[1], CHANGING[4]], ids=str)
@pytest.mark.parametrize(("fields", "at"), ENDPOINT_FAULTS, ids=lambda value: str(value)[:60])
def test_a_wrong_field_of_an_endpoint_is_pointed_at(
    scene: Scene, route: Route, fields: dict[str, Any], at: list[str]
) -> None:
    answer = refusal(scene, route, 422, "validation-failed", body=(MAKING[1].body or {}) | fields)

    assert sorted(pointers(answer)) == at


@pytest.mark.parametrize(
    ("body", "at"),
    [({}, ["/address", "/events"]), ({"address": HTTPS}, ["/events"]), ({"events": ["*"]}, ["/address"])],
    ids=str,
)
def test_an_endpoint_needs_an_address_and_events(scene: Scene, body: dict[str, Any], at: list[str]) -> None:
    answer = refusal(scene, MAKING[1], 422, "validation-failed", body=body)

    assert sorted(pointers(answer)) == at


SALE_FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"contact_id": "con_01kaj5bd40e6rr3f5y2kq0w9xz"}, ["/contact_id"]),
    ({"contact_id": "sal_01kaj5bd40e6rr3f5y2kq0w9xz"}, ["/contact_id"]),
    ({"contact_id": "x"}, ["/contact_id"]),
    ({"contact_id": ""}, ["/contact_id"]),
    ({"contact_id": "nul\0"}, ["/contact_id"]),
    ({"contact_id": None}, ["/contact_id"]),
    ({"contact_id": 1}, ["/contact_id"]),
    ({"contact_id": ["x"]}, ["/contact_id"]),
    ({"amount": 19.9}, ["/amount"]),
    ({"amount": 20}, ["/amount"]),
    ({"amount": True}, ["/amount"]),
    ({"amount": None}, ["/amount"]),
    ({"amount": ["19.90"]}, ["/amount"]),
    ({"amount": ""}, ["/amount"]),
    ({"amount": "19,90"}, ["/amount"]),
    ({"amount": "1e3"}, ["/amount"]),
    ({"amount": "NaN"}, ["/amount"]),
    ({"amount": "-19.90"}, ["/amount"]),
    ({"amount": "19.901"}, ["/amount"]),
    ({"amount": "1000000000000000"}, ["/amount"]),
    ({"amount": "9" * 100_000}, ["/amount"]),
    ({"amount": "19.90\n"}, ["/amount"]),
    ({"amount": "١٩"}, ["/amount"]),
    ({"amount": "1.5", "currency": "JPY"}, ["/amount"]),
    ({"currency": "eur"}, ["/currency"]),
    ({"currency": "EURO"}, ["/currency"]),
    ({"currency": "XXX"}, ["/currency"]),
    ({"currency": "XAU"}, ["/currency"]),
    ({"currency": ""}, ["/currency"]),
    ({"currency": None}, ["/currency"]),
    ({"currency": 978}, ["/currency"]),
    ({"amount": "x", "currency": "y"}, ["/amount", "/currency"]),
    ({"reference": ""}, ["/reference"]),
    ({"reference": "x" * 256}, ["/reference"]),
    ({"reference": 17}, ["/reference"]),
    ({"reference": "nul\0"}, ["/reference"]),
    ({"occurred_at": "yesterday"}, ["/occurred_at"]),
    ({"occurred_at": "2026-11-24"}, ["/occurred_at"]),
    ({"occurred_at": "2026-11-24T12:00:00"}, ["/occurred_at"]),
    ({"occurred_at": "0001-01-01T00:00:00+14:00"}, ["/occurred_at"]),
    ({"occurred_at": "9999-12-31T23:59:59-14:00"}, ["/occurred_at"]),
    ({"occurred_at": 1795521600}, ["/occurred_at"]),
    ({"occurred_at": None}, ["/occurred_at"]),
    ({"status": "paid"}, ["/status"]),
]


@pytest.mark.parametrize(("fields", "at"), SALE_FAULTS, ids=lambda value: str(value)[:60])
def test_a_wrong_field_of_a_sale_is_pointed_at(scene: Scene, fields: dict[str, Any], at: list[str]) -> None:
    answer = refusal(scene, NAMING_A_CONTACT[0], 422, "validation-failed", body=SALE | fields)

    assert sorted(pointers(answer)) == at


BOOKING_FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"contact_id": "con_01kaj5bd40e6rr3f5y2kq0w9xz"}, ["/contact_id"]),
    ({"contact_id": "x"}, ["/contact_id"]),
    ({"contact_id": None}, ["/contact_id"]),
    ({"title": ""}, ["/title"]),
    ({"title": "x" * 256}, ["/title"]),
    ({"title": "nul\0"}, ["/title"]),
    ({"title": None}, ["/title"]),
    ({"title": 1}, ["/title"]),
    ({"starts_at": "noon"}, ["/starts_at"]),
    ({"starts_at": "2026-11-24T12:00:00"}, ["/starts_at"]),
    ({"starts_at": None}, ["/starts_at"]),
    ({"starts_at": "0001-01-01T00:00:00+14:00"}, ["/starts_at"]),
    ({"ends_at": "9999-12-31T23:59:59-14:00"}, ["/ends_at"]),
    ({"ends_at": 1795521600}, ["/ends_at"]),
    ({"ends_at": "2026-11-24T12:00:00Z"}, ["/ends_at"]),
    ({"ends_at": "2026-11-24T12:00:00.000999Z"}, ["/ends_at"]),
    ({"ends_at": "2026-11-24T12:30:00+01:00"}, ["/ends_at"]),
    ({"starts_at": "x", "ends_at": "y"}, ["/ends_at", "/starts_at"]),
    ({"status": "cancelled"}, ["/status"]),
]


@pytest.mark.parametrize(("fields", "at"), BOOKING_FAULTS, ids=lambda value: str(value)[:60])
def test_a_wrong_field_of_a_booking_is_pointed_at(scene: Scene, fields: dict[str, Any], at: list[str]) -> None:
    answer = refusal(scene, NAMING_A_CONTACT[1], 422, "validation-failed", body=BOOKING | fields)

    assert sorted(pointers(answer)) == at


@named(NAMING_A_CONTACT)
def test_what_a_sale_and_a_booking_need_is_pointed_at(scene: Scene, route: Route) -> None:
    answer = refusal(scene, route, 422, "validation-failed", body={})

    assert sorted(pointers(answer)) == sorted(f"/{name}" for name in route.body or {})


@named(NAMING_A_CONTACT)
def test_a_contact_of_another_workspace_is_not_known(scene: Scene, route: Route) -> None:
    body = (route.body or {}) | {"contact_id": scene.foreign["contact"]}

    answer = refusal(scene, route, 422, "validation-failed", body=body)

    assert pointers(answer) == ["/contact_id"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": None},
        {"kind": "*"},
        {"kind": ""},
        {"kind": "contact.exploded"},
        {"kind": "contact.*"},
        {"kind": "Contact.created"},
        {"kind": "contact.created\0"},
        {"kind": 1},
        {"kind": ["contact.created"]},
    ],
    ids=str,
)
def test_a_test_of_no_kind_is_pointed_at(scene: Scene, body: dict[str, Any]) -> None:
    test = next(route for route in CHANGING if route.path.endswith("/test"))

    answer = refusal(scene, test, 422, "validation-failed", body=body)

    assert pointers(answer) == ["/kind"]


ENABLE, RESEND = (next(r for r in CHANGING if r.path.endswith("{endpoint}/" + name)) for name in ("enable", "resend"))
ENABLE_FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"release_held": 1}, ["/release_held"]),
    ({"release_held": "true"}, ["/release_held"]),
    ({"release_held": None}, ["/release_held"]),
    ({"release": True}, ["/release"]),
]
RESEND_FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"statuses": []}, ["/statuses"]),
    ({"statuses": "failed"}, ["/statuses"]),
    ({"statuses": None}, ["/statuses"]),
    ({"statuses": ["failed", "cancelled"]}, ["/statuses/1"]),
    ({"statuses": ["failed"] * 5}, ["/statuses"]),
    ({"kinds": []}, ["/kinds"]),
    ({"kinds": "contact.created"}, ["/kinds"]),
    ({"kinds": ["contact.created", "contact.exploded"]}, ["/kinds/1"]),
    ({"kinds": ["*"]}, ["/kinds/0"]),
    ({"kinds": ["tag.added"] * 101}, ["/kinds"]),
    ({"since": "yesterday"}, ["/since"]),
    ({"since": "2026-01-01T00:00:00"}, ["/since"]),
    ({"since": 1767225600}, ["/since"]),
    ({"since": None}, ["/since"]),
    ({"since": "0001-01-01T00:00:00+14:00"}, ["/since"]),
    ({"until": "9999-12-31T23:59:59-14:00"}, ["/until"]),
    ({"until": "2026-01-01"}, ["/until"]),
    ({"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, ["/until"]),
    ({"since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:59:59+01:00"}, ["/until"]),
    ({"dry_run": "yes"}, ["/dry_run"]),
    ({"dry_run": 1}, ["/dry_run"]),
    ({"endpoint_id": "whe_01kaj5bd40e6rr3f5y2kq0w9xz"}, ["/endpoint_id"]),
    ({"status": "failed", "limit": 5}, ["/limit", "/status"]),
]


@pytest.mark.parametrize(
    ("route", "fields", "at"),
    [(ENABLE, *each) for each in ENABLE_FAULTS]
    + [(RESEND, *each) for each in RESEND_FAULTS]
    + [(RESEND, {"dry_run": True} | fields, at) for fields, at in RESEND_FAULTS if "dry_run" not in fields],
    ids=lambda value: str(value)[:60],
)
def test_a_wrong_choice_is_pointed_at(scene: Scene, route: Route, fields: dict[str, Any], at: list[str]) -> None:
    answer = refusal(scene, route, 422, "validation-failed", body=fields)

    assert sorted(pointers(answer)) == at


@pytest.mark.parametrize("route", [ENABLE, RESEND], ids=str)
@pytest.mark.parametrize("text", ["[]", "1", "null", '"text"'])
def test_a_body_that_may_be_left_out_is_an_object(scene: Scene, route: Route, text: str) -> None:
    answer = refusal(scene, route, 422, "validation-failed", data=text, content_type="application/json")

    assert pointers(answer) == [""]


# 422: Idempotency-Key


@crossed(
    WRITES,
    "key",
    [
        "",
        "x",
        "00000000-0000-0000-0000-000000000000",
        "7f1b8f5e-3c0d-1a53-9d0e-2f6a1c9b8d47",
        "019a8f5e-3c0d-7a53-9d0e-2f6a1c9b8d47",
        "7f1b8f5e3c0d4a539d0e2f6a1c9b8d47",
        "{7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47}",
        "urn:uuid:7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47",
        "7f1b8f5e-3c0d-4a53-1d0e-2f6a1c9b8d47",
        "7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47, 8f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47",
    ],
)
def test_an_idempotency_key_that_is_no_uuid_v4_is_refused(scene: Scene, route: Route, key: str) -> None:
    answer = refusal(scene, route, 422, "validation-failed", headers={"Idempotency-Key": key})

    assert "Idempotency-Key" in json.loads(answer.text)["errors"][0]["detail"]


@named(WITH_BODY)
def test_a_request_that_was_refused_has_used_up_no_key(scene: Scene, route: Route) -> None:
    key = str(uuid.uuid4())

    refusal(scene, route, 422, "validation-failed", body={"unknown": 1}, headers={"Idempotency-Key": key})
    answer = scene.ask(route, key=key)

    assert answer.status_code == 202
    assert "Idempotent-Replayed" not in answer.headers


# 422: lists


@crossed(
    LISTS, "limit", ["0", "101", "-1", "x", "", "1.5", "1e1", "99999999999999999999", "%00", "٣", "1_0", "%205", "%2B5"]
)
def test_a_limit_that_is_not_from_1_to_100_is_refused(scene: Scene, route: Route, limit: str) -> None:
    answer = refusal(scene, route, 422, "validation-failed", path=f"{route.path}?limit={limit}")

    assert pointers(answer) == ["/limit"]


@crossed(LISTS, "limit", ["1", "50", "100"])
def test_a_limit_from_1_to_100_is_taken(scene: Scene, route: Route, limit: str) -> None:
    assert scene.ask(route, path=f"{route.path}?limit={limit}").status_code == 200


@crossed(LISTS, "query", ["offset=3", "page=2", "workspace=x", "limit=1&limit=2", "a%2Fb=1"])
def test_a_parameter_that_is_not_known_or_given_twice_is_pointed_at(scene: Scene, route: Route, query: str) -> None:
    answer = refusal(scene, route, 422, "validation-failed", path=f"{route.path}?{query}")

    assert pointers(answer) == ["/" + query.partition("=")[0].replace("%2F", "~1")]


@crossed(LISTS, "cursor", ["", "x", "%00", "AAAA", "é", "a" * 5000, "con_01kaj5bd40e6rr3f5y2kq0w9xz", "===="])
def test_a_broken_cursor_is_refused(scene: Scene, route: Route, cursor: str) -> None:
    answer = refusal(scene, route, 422, "validation-failed", path=f"{route.path}?cursor={cursor}")

    assert pointers(answer) == ["/cursor"]


@named(LISTS)
def test_a_forged_cursor_is_refused(scene: Scene, route: Route) -> None:
    cursor = cursors.seal(b"another key", "any list", ["zzz"])

    answer = refusal(scene, route, 422, "validation-failed", path=f"{route.path}?cursor={cursor}")

    assert pointers(answer) == ["/cursor"]


@pytest.mark.parametrize(
    ("path", "at"),
    [
        ("contacts?phone=x", "/phone"),
        ("contacts?updated_since=yesterday", "/updated_since"),
        ("contacts?updated_since=2026-01-01", "/updated_since"),
        ("contacts?updated_since=2026-01-01T00:00:00", "/updated_since"),
        ("contacts?q=a", "/q"),
        ("contacts?q=" + "a" * 101, "/q"),
        ("contacts?q=a%00b", "/q"),
        ("contacts?email=a%00b", "/email"),
        ("contacts?tag=%00", "/tag"),
        ("contacts?external_id=%00", "/external_id"),
        ("sales?occurred_since=yesterday", "/occurred_since"),
        ("sales?occurred_until=2026-01-01T00:00:00", "/occurred_until"),
        ("sales?occurred_since=0001-01-01T00:00:00%2B14:00", "/occurred_since"),
        ("sales?reference=%00", "/reference"),
        ("sales?contact_id=%00", "/contact_id"),
        ("sales?currency=EUR", "/currency"),
        ("bookings?status=lost", "/status"),
        ("bookings?starts_since=2026-01-01", "/starts_since"),
        ("bookings?starts_until=9999-12-31T23:59:59-14:00", "/starts_until"),
        ("bookings?contact_id=%00", "/contact_id"),
        ("jobs?status=done", "/status"),
        ("jobs?kind=contacts.explode", "/kind"),
        ("jobs?status=", "/status"),
        ("webhooks/deliveries?status=lost", "/status"),
        ("webhooks/deliveries?since=x", "/since"),
        ("webhooks/deliveries?until=x", "/until"),
        ("webhooks/deliveries?endpoint_id=%00", "/endpoint_id"),
        ("webhooks/deliveries?kind=%00", "/kind"),
        ("webhooks/sweeps?action=explode", "/action"),
        ("webhooks/sweeps?endpoint_id=%00", "/endpoint_id"),
        ("webhooks/audit-log?action=contacts.upsert", "/action"),
        ("webhooks/audit-log?endpoint_id=%00", "/endpoint_id"),
    ],
)
def test_a_wrong_filter_is_pointed_at(scene: Scene, path: str, at: str) -> None:
    assert pointers(refusal(scene, Route("GET", path, None), 422, "validation-failed")) == [at]
    assert pointers(refusal(scene, Route("GET", f"/api/v1/{path}", None), 422, "validation-failed")) == [at]


# Other workspaces, where an identifier goes and nothing is refused


@pytest.mark.parametrize("at", ["", "/api/v1/"])
def test_a_filter_with_data_of_another_workspace_finds_nothing(scene: Scene, at: str) -> None:
    assert scene.theirs.get(f"{at}contacts?email=eve@example.com").json["data"]

    assert scene.ours.get(f"{at}contacts?email=eve@example.com").json["data"] == []
