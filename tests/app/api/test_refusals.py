"""Every way in which the API refuses a request: all variants on one route, and one of each rule on every route.

No refusal leaves a trace (`expect`). The routes are those of the application, so a new one needs no entry here.
`test_wrong_fields` is about fields and filters, `test_lists` about cursors, and `test_attacks` about attacks.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from werkzeug.test import TestResponse

from app.domain.people import tokens
from app.domain.people.tokens import RESTRICTIONS, UNRESTRICTED
from app.lib import clock
from app.lib.token_format import new as new_token
from tests.surface import Operation, Scene, expect, said, sound, unknown

UNKNOWN = "01kaj5bd40e6rr3f5y2kq0w9xz"
# Text that quoting, formatting or markup could take for something else than an identifier.
NASTY = quote("con_'; -- \" OR 1=1 %s %% \\ {{7*7}} <b> \u202e \x85 \ufeff é💩 null 9e999")


def ask(scene: Scene, operation: Operation, *args: Any, **options: Any) -> TestResponse:
    """Sends the request with a new Idempotency-Key, which is stored if it is accepted, and waits for its result."""
    headers = {"Idempotency-Key": str(uuid.uuid4()), "Prefer": "wait=1"} | options.pop("headers", {})
    return scene.ask(operation, *args, headers=headers, **options)


def with_identifiers(scene: Scene) -> list[Operation]:
    return [operation for operation in scene.views if operation.nouns]


def test_the_routes_are_found(scene: Scene) -> None:
    assert len(scene.operations) >= 250
    assert len(scene.views) >= 125
    assert len(scene.with_body) >= 35
    assert len(scene.lists) >= 25
    assert {noun for operation in scene.operations for noun in operation.nouns} <= scene.own.keys()


# The reason in `detail`


@pytest.mark.parametrize(
    ("query", "body", "headers", "detail"),
    [
        ("", {"email": "x"}, {}, "email: This is not an e-mail address: An email address must have an @-sign."),
        ("", {"emial": "a@example.com", "phone": "+4930123456"}, {}, "emial: Unknown field. Did you mean 'email'?"),
        (
            "",
            {"email": "a@example.com", "firstName": "Ada"},
            {},
            "firstName: Unknown field. Did you mean 'first_name'?",
        ),
        (
            "",
            {"email": "a@example.com", "colour": 1},
            {},
            "colour: Unknown field. There are custom_fields, email, external_id, first_name, last_name, locale,"
            " opted_out, phone, tags, timezone.",
        ),
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


@pytest.mark.parametrize(
    ("address", "detail"),
    [
        ("contacts?page=2", "page: Unknown field. There are cursor, "),
        ("contacts?Limit=2", "Limit: Unknown field. Did you mean 'limit'?"),
        ("events?kind=contact.create", "Did you mean 'contact.created'?"),
        ("jobs?kind=contact.upsert", "Did you mean 'contacts.upsert'?"),
    ],
)
def test_a_query_that_means_nothing_names_the_nearest(scene: Scene, address: str, detail: str) -> None:
    refused = scene.ours.get(address)

    assert (refused.status_code, detail in refused.get_json(force=True)["detail"]) == (422, True)


def test_the_detail_names_a_query_parameter(scene: Scene) -> None:
    refused = scene.ours.get("contacts?limit=0&updated_since=now").get_json(force=True)

    assert refused["detail"] == "limit: It must be from 1 to 100 … and 1 more fault"


# 401


def test_a_token_anywhere_but_in_its_header_is_none(scene: Scene) -> None:
    given = dict.fromkeys(("token", "access_token", "api_key", "key", "bearer", "Authorization"), scene.ours.token)
    headers = {"Cookie": urlencode(given).replace("&", "; "), "X-Api-Key": scene.ours.token}
    headers |= {"X-Authorization": f"Bearer {scene.ours.token}", "Idempotency-Key": str(uuid.uuid4())}

    def answers() -> Iterator[tuple[Operation, TestResponse]]:
        for operation in scene.operations:
            body = given if operation.method != "GET" else None
            target = f"{scene.path(operation)}?{urlencode(given)}"
            answer = scene.ours.client.open(target, method=operation.method, headers=headers, json=body)
            assert answer.headers.get("WWW-Authenticate") == "Bearer", operation
            yield operation, answer

    expect("401 unauthenticated", answers())


@pytest.mark.parametrize(
    ("headers", "query", "said"),
    [
        ({"Authorization": "Basic {token}"}, "", "does not know Basic"),
        ({"Authorization": "{token}"}, "", "'Bearer' is missing"),
        ({"Authorization": "Bearer {cut}"}, "", "The token is not whole"),
        ({"X-API-Key": "{token}"}, "", "not read from X-API-Key"),
        ({}, "?access_token={token}", "not read from the address"),
    ],
)
def test_it_is_said_why_a_token_was_not_taken(scene: Scene, headers: dict[str, str], query: str, said: str) -> None:
    known = {"token": scene.ours.token, "cut": scene.ours.token[:-3]}
    sent = {name: value.format(**known) for name, value in headers.items()}

    answer = scene.ours.client.get(f"/api/v1/contacts{query.format(**known)}", headers=sent)

    detail = answer.get_json(force=True)["detail"]
    assert (answer.status_code, said in detail) == (401, True)
    assert scene.ours.token not in answer.text


def test_a_method_that_is_not_supported_is_answered_with_those_that_are(scene: Scene) -> None:
    answer = scene.ours.client.delete("/api/v1/contacts", headers={"Authorization": f"Bearer {scene.ours.token}"})

    detail = "This address does not support DELETE. It supports GET, HEAD, OPTIONS, POST."
    assert (answer.status_code, answer.get_json(force=True)["detail"]) == (405, detail)


@pytest.mark.parametrize(
    ("path", "raw", "said"),
    [
        ("contacts", '{"email": "a@example.com", "first_name": "Zoë"}'.encode("latin-1"), "The body is not UTF-8."),
        ("sales", b'{"amount": "-5.00", "currency": "EUR", "contact_id": "x"}', "An amount is not negative"),
        ("sales", b'{"amount": "5.00", "currency": "eur", "contact_id": "x"}', "Did you mean 'EUR'?"),
        (
            "sales",
            b'{"amount": "5.00", "currency": "EUR", "contact_id": "x", "occurred_at": "2026-11-21T10:00:00"}',
            "Give the time with its zone",
        ),
    ],
)
def test_a_refusal_names_the_mistake(scene: Scene, path: str, raw: bytes, said: str) -> None:
    headers = {"Authorization": f"Bearer {scene.ours.token}", "Idempotency-Key": str(uuid.uuid4())}

    answer = scene.ours.client.post(f"/api/v1/{path}", data=raw, headers=headers, content_type="application/json")

    assert said in answer.get_json(force=True)["detail"]


def ask_me(scene: Scene, authorization: str) -> TestResponse:
    return scene.ours.get("/api/v1/auth/me", headers={"Authorization": authorization})


def write(scene: Scene, authorization: str) -> TestResponse:
    headers = {"Authorization": authorization, "Idempotency-Key": str(uuid.uuid4())}
    return scene.ours.post("contacts", {"external_id": "x"}, headers=headers)


@pytest.mark.parametrize("ask", [ask_me, write])
def test_what_is_no_valid_token_is_refused(scene: Scene, ask: Any) -> None:
    api = scene.ours
    _, expired = tokens.issue(api.workspace_id, "Short", expires_in_seconds=1)
    revoked_id, revoked = tokens.issue(api.workspace_id, "Revoked")
    tokens.revoke(revoked_id)
    wrong = ["", "bhp_", "bhp_short", "x" * 40, "bhp_" + "0" * 100_000, "bhp_" + "\xc3\xa9" * 36]
    wrong += [new_token(), revoked, *forgeries(api.token)]

    with clock.moved_by(seconds=2):
        expect("401 unauthenticated", [(expired, ask(scene, f"Bearer {expired}"))])
    expect("401 unauthenticated", ((repr(token)[:99], ask(scene, f"Bearer {token}")) for token in wrong))


def forgeries(token: str) -> Iterator[str]:
    for place, character in enumerate(token):
        yield token[:place] + ("A" if character != "A" else "B") + token[place + 1 :]
        yield token[:place] + character.swapcase() + token[place + 1 :] if character.isalpha() else token[:place]
        yield token[:place] + token[place + 1 :]
    yield from (token + "0", token[:-1], token * 2, token.upper(), token.lower(), token.swapcase())
    yield from (token[:10] + " " + token[10:], token[:10] + "\t" + token[10:], "\xa0" + token, token + "\x85")
    yield from (token + "\0", token[:10] + "\0" + token[10:], f'"{token}"', f"<{token}>", f"{token},{token}")
    yield from (f"{token} {token}", f"{token};", token + "\xff", "\xef\xbb\xbf" + token, token[4:], "*", "null", "%")


@pytest.mark.parametrize("ask", [ask_me, write])
def test_a_token_sent_in_another_way_is_none(scene: Scene, ask: Any) -> None:
    token = scene.ours.token
    ways = ["{}", "Bearer", "Bearer\t{}", "Bearer{}", "Bearer={}", "Bearer token={}", "Bearer Bearer {}", "Basic {}"]
    ways += ["Bearer {0}, Bearer {0}", "Bearer {0},Bearer {0}", "Token {}", "Basic Og==, Bearer {}", "\x00Bearer {}"]

    expect("401 unauthenticated", ((way, ask(scene, way.format(token))) for way in ways))


def test_two_tokens_are_none(scene: Scene) -> None:
    twice = [("Authorization", f"Bearer {each.token}") for each in (scene.ours, scene.theirs)]

    expect("401 unauthenticated", [("two", scene.ours.client.get("/api/v1/auth/me", headers=twice))])


def test_the_refusal_of_a_token_calls_it_invalid_and_does_not_repeat_it(scene: Scene) -> None:
    forged = scene.ours.token[:-1] + "\xff"

    answer = sound(ask_me(scene, f"Bearer {forged}"))

    assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
    assert forged[:-1] not in answer.text + str(answer.headers)


# 403

# The code's restrictions, stated a second time by the noun that a path begins with. "" is the workspace itself.
NOUNS = {
    None: ("auth", "jobs"),
    UNRESTRICTED: ("",),
    "contacts": ("contacts", "sales", "bookings", "imports"),
    "inbox": (
        *("channels", "conversations", "messages", "notes", "saved-replies", "macros"),
        *("members", "uploads", "reports"),
    ),
    "automations": ("automations", "runs", "broadcasts", "segments"),
    "billing": ("billing", "invoices"),
    "webhooks": ("webhooks", "events"),
}
NEEDED = {noun: (restriction,) if restriction else () for restriction, nouns in NOUNS.items() for noun in nouns}
# Routes that need another restriction than their noun.
OTHERWISE = {
    "GET /webhooks/events": (),
    "GET /segments": ("automations", "contacts"),
    "GET /segments/<segment_id>": ("automations", "contacts"),
    "POST /segments/count": ("automations", "contacts"),
}


def test_every_route_needs_the_restriction_of_its_noun(scene: Scene) -> None:
    for each in scene.operations:
        noun = each.collection[1:].split("/")[0]
        assert each.restrictions == OTHERWISE.get(f"{each.method} {each.collection}", NEEDED[noun]), each


def test_a_token_with_all_the_other_restrictions_is_refused(scene: Scene) -> None:
    restricted = [operation for operation in scene.operations if operation.restrictions]
    callers = {
        allowed: scene.ours.restricted_to(*(set(RESTRICTIONS) - set(allowed)))
        for allowed in {operation.restrictions for operation in restricted}
    }

    def answers() -> Iterator[tuple[Operation, TestResponse]]:
        for operation in restricted:
            answer = ask(scene, operation, caller=callers[operation.restrictions])
            assert str(operation.restriction) in json.loads(answer.text)["detail"], operation
            yield operation, answer

    expect("403 insufficient-scope", answers())


def test_a_token_with_one_of_its_restrictions_alone_may_use_a_read(scene: Scene) -> None:
    callers = {restriction: scene.ours.restricted_to(restriction) for restriction in RESTRICTIONS}
    # A job needs the restriction of its kind: see `test_jobs`.
    reads = [each for each in [*scene.reads, scene.named("POST /segments/count")] if "job" not in each.nouns]
    asked = [(each, restriction) for each in reads for restriction in each.restrictions or ("billing",)]

    expect(
        "200",
        (
            ((operation, restriction), ask(scene, operation, caller=callers[restriction]))
            for operation, restriction in asked
            if restriction != UNRESTRICTED
        ),
    )


def test_jobs_of_a_kind_that_the_token_may_not_see_are_refused(scene: Scene) -> None:
    caller = scene.ours.restricted_to("webhooks")

    for path in ("jobs", "/api/v1/jobs"):
        expect("403 insufficient-scope", [(path, caller.get(f"{path}?kind=contacts.upsert"))])


# 404, and other workspaces


def test_what_another_workspace_has_looks_like_what_nobody_has(scene: Scene) -> None:
    texts: dict[tuple[str, str, bool], set[str]] = defaultdict(set)

    def answers() -> Iterator[tuple[object, TestResponse]]:
        for operation, noun in [(each, noun) for each in scene.operations for noun in each.nouns]:
            for identifier in (scene.foreign[noun], unknown()[noun]):
                path = scene.path(operation, scene.own | {noun: identifier})
                for is_dry in {False, operation.body is not None and "dry_run" in operation.body.load_fields}:
                    options = {"body": scene.body(operation) | {"dry_run": True}} if is_dry else {}
                    answer = ask(scene, operation, path, **options)
                    texts[str(operation), noun, is_dry].add(re.sub(r'"traceId":"[^"]+"', "", answer.text))
                    yield (operation, identifier), answer

    expect("404 not-found", answers())
    assert {asked: shown for asked, shown in texts.items() if len(shown) > 1} == {}


def test_another_workspace_looks_like_one_that_does_not_exist(scene: Scene) -> None:
    operations = [operation for operation in scene.operations if "<workspace>" in operation.rule]
    theirs = [operation.path(scene.theirs.workspace_id, scene.foreign) for operation in operations]
    one, narrow = scene.named("GET /contacts/<contact_id>"), scene.ours.restricted_to("billing")
    nobodys = [f"ws_{UNKNOWN}", f"con_{UNKNOWN}", scene.ours.workspace_id.upper(), "x", "%20", NASTY]

    expect("404 not-found", ((each, ask(scene, each, path)) for each, path in zip(operations, theirs, strict=True)))
    expect("404 not-found", ((text, ask(scene, one, one.path(text, scene.own))) for text in nobodys))
    # Whatever the token may do.
    expect("404 not-found", [(one, ask(scene, one, one.path(scene.theirs.workspace_id, scene.own), caller=narrow))])


def test_an_identifier_of_another_workspace_in_a_query_finds_what_nobodys_finds(scene: Scene) -> None:
    asked = [
        (operation, name, name.removesuffix("_id"))
        for operation in scene.lists
        for name in operation.query.load_fields
        if name.endswith("_id") and name.removesuffix("_id") in scene.foreign
    ]

    assert asked
    for operation, name, noun in asked:
        theirs = ask(scene, operation, query=f"{name}={scene.foreign[noun]}")
        nobodys = ask(scene, operation, query=f"{name}={unknown()[noun]}")
        assert said(theirs) == said(nobodys), (operation, name)
        assert theirs.status_code in (404, 422) or theirs.json["data"] == nobodys.json["data"] == [], (operation, name)


def test_an_identifier_of_another_workspace_in_a_body_looks_like_one_that_nothing_has(scene: Scene) -> None:
    for operation in scene.with_body:
        for name in operation.body.load_fields:
            noun = name.removesuffix("_id")
            if name.endswith("_id") and noun in scene.foreign:
                theirs, nobodys = (
                    outcome(scene, ask(scene, operation, body=scene.body(operation) | {name: identifier}))
                    for identifier in (scene.foreign[noun], unknown()[noun])
                )
                assert theirs == nobodys, (operation, name)
                assert theirs[:3] in ("404", "409", "422"), (operation, name)


def outcome(scene: Scene, answer: TestResponse) -> str:
    """Returns what the answer says, or the status of the job's problem if the write was accepted."""
    if answer.status_code != 202:
        return said(answer)
    return str((scene.ours.done(answer)["problem"] or {}).get("status"))


def test_a_list_shows_nothing_of_another_workspace(scene: Scene) -> None:
    assert scene.theirs.get("contacts?email=0.eve@example.com").json["data"]
    assert scene.ours.get("contacts?email=0.eve@example.com").json["data"] == []

    for operation in scene.lists:
        shown = ask(scene, operation, query="limit=100").text
        assert [each for each in (scene.theirs.workspace_id, *scene.foreign.values()) if each in shown] == [], operation


def test_what_is_no_identifier_is_not_found(scene: Scene) -> None:
    every = with_identifiers(scene)
    found_by = {operation.nouns[-1]: operation for operation in every}
    texts = ["x", "1", "%00", "a%00b", "con_", "'", "%F0%9F%92%A9", "x" * 5000, "null", f"con_{UNKNOWN}%00"]
    prefix = {noun: "tok" + identifier[3:] for noun, identifier in scene.own.items()}
    capitals = {noun: identifier.upper() for noun, identifier in scene.own.items()}
    nasty = dict.fromkeys(scene.own, NASTY)

    for known in (prefix, capitals, nasty):
        expect("404 not-found", ((each, ask(scene, each, scene.path(each, known))) for each in every))
    for text in texts:
        known = dict.fromkeys(scene.own, text)
        expect("404 not-found", ((each, ask(scene, each, scene.path(each, known))) for each in found_by.values()))


def test_an_unknown_path_is_not_found(scene: Scene) -> None:
    paths = ["/", "/api", "/api/v1", "/api/v2/contacts", "/api/v1/nothing", "nothing", "contacts/"]

    expect("404 not-found", ((path, scene.ours.patch(f"{path}/x/y/z")) for path in paths))


# 405, and methods that every route has


def methods(scene: Scene) -> dict[str, set[str]]:
    """The methods at each path."""
    found: dict[str, set[str]] = {}
    for operation in scene.operations:
        found.setdefault(scene.path(operation), set()).add(operation.method)
    return found


def allowed(answer: TestResponse) -> set[str]:
    told = set(answer.headers["Allow"].split(", "))
    assert "OPTIONS" in told
    return told - {"HEAD", "OPTIONS"}


def test_the_response_to_a_wrong_method_lists_the_right_ones(scene: Scene) -> None:
    def answers() -> Iterator[tuple[object, TestResponse]]:
        for number, (path, right) in enumerate(methods(scene).items()):
            wrong = sorted({"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"} - right)
            method = wrong[number % len(wrong)]
            answer = scene.ours.ask(method, path)
            assert allowed(answer) == right, path
            yield (method, path), answer

    expect("405 method-not-allowed", answers())


def test_options_lists_the_methods_without_a_token(scene: Scene) -> None:
    for path, right in methods(scene).items():
        answer = scene.ours.client.options(path)
        assert (answer.status_code, answer.data, answer.content_type) == (200, b"", None), path
        assert allowed(answer) == right, path


def test_head_is_get_without_the_body(scene: Scene) -> None:
    # An export is sent in pieces, and its length is not known before.
    for operation in [each for each in scene.reads if not each.rule.endswith("/export")]:
        answer = scene.ours.ask("HEAD", scene.path(operation))
        assert (answer.status_code, answer.data, answer.mimetype) == (200, b"", "application/json"), operation
        assert int(answer.headers["Content-Length"]) > 0, operation


def test_head_is_refused_like_get(scene: Scene) -> None:
    caller = scene.ours.with_token("wrong")

    expect("401", ((each, caller.ask("HEAD", scene.path(each))) for each in scene.reads))


# 400, 413, 415, 422: bodies, of which all variants are in `test_parsing` and `test_attacks`

JSON = {"content_type": "application/json"}


@pytest.mark.parametrize(
    ("outcome", "options"),
    [
        ("400 malformed-request", {"data": b'{"email": }', **JSON}),
        ("400 malformed-request", {"data": b'{"a": 1, "a": 1}', **JSON}),
        ("413 payload-too-large", {"data": b'{"first_name": "%s"}' % (b"x" * 256 * 1024), **JSON}),
        ("415 unsupported-media-type", {"data": b'{"a": 1}', "content_type": "text/plain"}),
        ("415 unsupported-media-type", {"data": b"\x1f\x8b", "headers": {"Content-Encoding": "gzip"}, **JSON}),
        ("422 validation-failed whole", {"data": b'[{"a": 1}]', **JSON}),
        ("422 validation-failed /a", {"data": b'{"a": "\\u0000"}', **JSON}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_body_that_is_no_object_is_refused_by_every_view(scene: Scene, outcome: str, options: dict[str, Any]) -> None:
    expect(outcome, ((each, ask(scene, each, **options)) for each in scene.taking_json))


def test_json_that_is_no_object_is_invalid_as_a_whole(scene: Scene) -> None:
    endpoint = "/webhooks/endpoints/<endpoint_id>"
    names = ("POST /contacts", f"POST {endpoint}/enable", f"POST {endpoint}/rotate-secret")
    asked = [(name, text) for name in names for text in ("[]", "1", "null", '"text"')] + [("POST /contacts", "")]

    expect(
        "422 validation-failed whole",
        ((each, ask(scene, scene.named(each[0]), data=each[1], **JSON)) for each in asked),
    )


def test_a_field_that_is_not_known_is_pointed_at(scene: Scene) -> None:
    wrong = {"id": f"con_{UNKNOWN}", "a/b~c": 1}

    expect(
        "422 validation-failed /a~1b~0c /id",
        ((each, ask(scene, each, body=scene.body(each) | wrong)) for each in scene.taking_json),
    )


def test_a_parameter_that_is_not_known_or_given_twice_is_pointed_at(scene: Scene) -> None:
    contacts = scene.named("GET /contacts")

    expect("422 validation-failed /unlisted", ((each, ask(scene, each, query="unlisted=1")) for each in scene.views))
    for query in ("offset=3", "page=2", "workspace=x", "limit=1&limit=2", "a%2Fb=1"):
        pointer = "/" + query.partition("=")[0].replace("%2F", "~1")
        expect(f"422 validation-failed {pointer}", [(query, ask(scene, contacts, query=query))])


# 422: Idempotency-Key


def test_an_idempotency_key_that_is_no_uuid_v4_is_refused(scene: Scene) -> None:
    key = "7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47"
    wrong = ["", "x", "00000000-0000-0000-0000-000000000000", key.replace("-4", "-1"), key.replace("-4", "-7")]
    wrong += [key.replace("-", ""), key.replace("-9", "-1"), f"{{{key}}}", f"urn:uuid:{key}", f"{key}, {key}"]
    upsert = scene.named("POST /contacts")
    taking_keys = [operation for operation in scene.views if operation.makes_job or operation.rule.endswith("/uploads")]

    def ask_with(operation: Operation, key: str) -> tuple[object, TestResponse]:
        sent = {"data": b"{}", "content_type": "application/jsonl"} if operation.takes_file else {}
        answer = ask(scene, operation, headers={"Idempotency-Key": key}, **sent)
        assert "Idempotency-Key" in json.loads(answer.text)["errors"][0]["detail"], operation
        return operation, answer

    expect("422 validation-failed /Idempotency-Key", (ask_with(operation, "x") for operation in taking_keys))
    expect("422 validation-failed /Idempotency-Key", (ask_with(upsert, key) for key in wrong))


# 422: lists


def test_a_limit_that_is_not_from_1_to_100_is_refused(scene: Scene) -> None:
    contacts = scene.named("GET /contacts")
    wrong = ["0", "-1", "x", "", "1.5", "1e1", "9" * 20, "%00", "٣", "1_0", "%205", "%2B5"]

    expect("422 validation-failed /limit", ((each, ask(scene, each, query="limit=101")) for each in scene.lists))
    expect("422 validation-failed /limit", ((limit, ask(scene, contacts, query=f"limit={limit}")) for limit in wrong))
    for limit in (1, 50, 100):
        expect("200", ((each, ask(scene, each, query=f"limit={limit}")) for each in scene.lists))
