"""Attacks on every route: none gains anything, and none gets a 5xx."""

from __future__ import annotations

import gzip
import json
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.config import settings
from tests.cast import Api, found, one
from tests.conftest import clear_redis
from tests.copies import Copy
from tests.surface import (
    Operation,
    as_sent,
    belongings,
    everything,
    furnish,
    lists,
    operations,
    sample,
    sample_of,
    sound,
    unknown,
)


@dataclass(frozen=True)
class Scene:
    """A workspace and another, each with some of everything, and what an attacker may ask of them."""

    ours: Api
    theirs: Api
    own: dict[str, str]
    foreign: dict[str, str]
    operations: list[Operation]

    @property
    def writes(self) -> list[Operation]:
        # An upload is a file, of whatever content.
        return [operation for operation in self.operations if operation.writes and operation.collection != "/uploads"]

    @property
    def with_body(self) -> list[Operation]:
        return [operation for operation in self.operations if operation.body is not None]

    @property
    def lists(self) -> list[Operation]:
        return lists(self.operations)

    def path(self, operation: Operation, known: dict[str, str] | None = None) -> str:
        return operation.path(self.ours.workspace_id, self.own if known is None else known)

    def body(self, operation: Operation) -> dict[str, Any] | None:
        return sample(operation.body, self.own) if operation.body else None

    def ask(self, operation: Operation, path: str | None = None, **options: Any) -> TestResponse:
        """A request that would be accepted, but for the options; the path goes as it is. Its answer is sound."""
        needs_body = operation.writes or operation.rule.endswith("/segments/count")
        if needs_body and not options.keys() & {"data", "json"}:
            options.setdefault("body", self.body(operation))
        sent = as_sent(path or self.path(operation)) | options.pop("environ_overrides", {})
        return sound(self.ours.ask(operation.method, "/", environ_overrides=sent, **options), operation)

    def fetch(self, path: str, **headers: str) -> TestResponse:
        """What anybody gets there."""
        return self.ours.client.get("/", headers=headers, environ_overrides=as_sent(path))


@pytest.fixture(scope="module")
def furnished(app: Flask, empty_for_module: None, client: FlaskClient) -> tuple[Scene, Copy]:
    ours, theirs = found(client, "Ours"), found(client, "Theirs")
    found_operations = operations(app)
    nouns = {noun for operation in found_operations for noun in operation.nouns}
    own, foreign = furnish(ours, "ada@example.com", nouns), furnish(theirs, "eve@example.com", nouns)
    return Scene(ours, theirs, own, foreign, found_operations), Copy()


@pytest.fixture
def scene(furnished: tuple[Scene, Copy]) -> Iterator[Scene]:
    """Whatever is tried, the other workspace stays as it was, and no accepted write breaks."""
    found_scene, copy = furnished
    clear_redis()
    copy.put_back()
    ours, theirs = found_scene.ours, found_scene.theirs
    before = belongings(theirs.workspace_id)
    yield found_scene
    ours.apply()
    assert belongings(theirs.workspace_id) == before
    assert one("SELECT count(*) FROM jobs WHERE (problem->>'status')::int >= 500") == 0


def document(answer: TestResponse) -> Any:
    """What the answer says, without what is new in every answer."""
    said = answer.get_json(force=True, silent=True)
    return {name: value for name, value in said.items() if name != "traceId"} if isinstance(said, dict) else said


def pointers(answer: TestResponse) -> list[str]:
    return [error["pointer"] for error in json.loads(answer.text)["errors"]]


def test_the_routes_are_found(scene: Scene) -> None:
    assert len(scene.operations) >= 32
    assert len(scene.with_body) >= 7
    assert len(scene.lists) >= 12
    assert {noun for operation in scene.operations for noun in operation.nouns} <= scene.own.keys()


# Other workspaces


def test_an_identifier_of_another_workspace_in_the_path_looks_like_one_that_nothing_has(
    scene: Scene, subtests: pytest.Subtests
) -> None:
    before = everything()

    for operation in [operation for operation in scene.operations if operation.nouns]:
        with subtests.test(str(operation)):
            theirs = scene.ask(operation, scene.path(operation, scene.own | scene.foreign))
            nobodys = scene.ask(operation, scene.path(operation, unknown()))
            assert theirs.status_code == nobodys.status_code == 404
            assert document(theirs) == document(nobodys)

    assert everything() == before


def test_another_workspace_in_the_path_looks_like_one_that_does_not_exist(
    scene: Scene, subtests: pytest.Subtests
) -> None:
    before = everything()

    for operation in [operation for operation in scene.operations if "<workspace>" in operation.rule]:
        for known in (scene.own, scene.foreign):
            with subtests.test(str(operation)):
                theirs = scene.ask(operation, operation.path(scene.theirs.workspace_id, known))
                nobodys = scene.ask(operation, operation.path(unknown()["workspace"], known))
                assert theirs.status_code == nobodys.status_code == 404
                assert document(theirs) == document(nobodys)

    assert everything() == before


def test_an_identifier_of_another_workspace_in_the_query_finds_nothing(scene: Scene, subtests: pytest.Subtests) -> None:
    asked = [
        (operation, name)
        for operation in scene.lists
        for name in operation.query.load_fields
        if name.endswith("_id") and name.removesuffix("_id") in scene.foreign
    ]

    assert asked
    for operation, name in asked:
        with subtests.test(f"{operation}?{name}"):
            noun = name.removesuffix("_id")
            theirs = scene.ask(operation, f"{scene.path(operation)}?{name}={scene.foreign[noun]}")
            nobodys = scene.ask(operation, f"{scene.path(operation)}?{name}={unknown()[noun]}")
            assert (theirs.status_code, document(theirs)) == (nobodys.status_code, document(nobodys))
            assert theirs.status_code in (404, 422) or theirs.json["data"] == []


def test_an_identifier_of_another_workspace_in_the_body_looks_like_one_that_nothing_has(
    scene: Scene, subtests: pytest.Subtests
) -> None:
    for operation in scene.with_body:
        for name in operation.body.load_fields:
            noun = name.removesuffix("_id")
            if name.endswith("_id") and noun in scene.foreign:
                with subtests.test(f"{operation} {name}"):
                    outcomes = [
                        outcome(scene, scene.ask(operation, body={**(scene.body(operation) or {}), name: identifier}))
                        for identifier in (scene.foreign[noun], unknown()[noun])
                    ]
                    assert outcomes[0] == outcomes[1]
                    assert outcomes[0][1] in (404, 409, 422)


def outcome(scene: Scene, answer: TestResponse) -> tuple[int, int | None]:
    """The status of the answer, and that of the problem in the end."""
    if answer.status_code != 202:
        return answer.status_code, answer.status_code
    problem = scene.ours.done(answer)["problem"]
    return 202, problem and problem["status"]


def test_a_list_shows_nothing_of_another_workspace(scene: Scene, subtests: pytest.Subtests) -> None:
    for operation in scene.lists:
        with subtests.test(str(operation)):
            shown = scene.ask(operation, f"{scene.path(operation)}?limit=100").text
            assert [identifier for identifier in scene.foreign.values() if identifier in shown] == []
            assert scene.theirs.workspace_id not in shown


# Cursors


def cursors(api: Api, found: list[Operation], known: dict[str, str]) -> Iterator[tuple[Operation, str]]:
    """The lists with a cursor of each; of those alone that have a second page."""
    for operation in found:
        answer = sound(api.get(f"{operation.path(api.workspace_id, known)}?limit=1"), operation)
        if cursor := answer.json["meta"]["nextCursor"]:
            yield operation, cursor


def test_all_lists_have_cursors(scene: Scene) -> None:
    assert len(list(cursors(scene.ours, scene.lists, scene.own))) >= 12
    assert len(list(cursors(scene.theirs, scene.lists, scene.foreign))) >= 12


def refuses_cursor(scene: Scene, operation: Operation, cursor: str) -> None:
    answer = scene.ask(operation, f"{scene.path(operation)}?cursor={cursor}")
    assert (answer.status_code, pointers(answer)) == (422, ["/cursor"]), cursor


def test_a_forged_cursor_is_refused_wherever_it_was_altered(scene: Scene, subtests: pytest.Subtests) -> None:
    for number, (operation, cursor) in enumerate(cursors(scene.ours, scene.lists, scene.own)):
        with subtests.test(str(operation)):
            # All cursors are made in one way: the lists together have every place altered, several times over.
            for place in range(number % 8, len(cursor), 8):
                refuses_cursor(scene, operation, cursor[:place])
                refuses_cursor(scene, operation, cursor[:place] + other_than(cursor[place]) + cursor[place + 1 :])
            for forged in (cursor + "A", cursor + "=", cursor * 2, cursor.swapcase(), f"%20{cursor}", f"{cursor}%0A"):
                refuses_cursor(scene, operation, forged)


def other_than(character: str) -> str:
    return "A" if character != "A" else "B"


def test_a_cursor_of_another_list_or_workspace_is_refused(scene: Scene, subtests: pytest.Subtests) -> None:
    own = list(cursors(scene.ours, scene.lists, scene.own))

    for operation, theirs in cursors(scene.theirs, scene.lists, scene.foreign):
        with subtests.test(str(operation)):
            refuses_cursor(scene, operation, theirs)
            for other, cursor in own:
                if other.collection != operation.collection:
                    refuses_cursor(scene, operation, cursor)


def test_a_cursor_is_refused_with_a_filter_that_it_was_not_made_with(scene: Scene, subtests: pytest.Subtests) -> None:
    for operation, cursor in cursors(scene.ours, scene.lists, scene.own):
        for name, field in operation.query.load_fields.items():
            if name not in ("limit", "cursor"):
                with subtests.test(f"{operation}?{name}"):
                    value = {"phone": "%2B4930123456"}.get(name) or sample_of(name, field, scene.own)
                    answer = scene.ask(operation, f"{scene.path(operation)}?cursor={cursor}&{name}={value}")
                    assert answer.status_code == 422


# Tokens


def forgeries(token: str) -> Iterator[str]:
    for place, character in enumerate(token):
        yield token[:place] + other_than(character) + token[place + 1 :]
        yield token[:place] + character.swapcase() + token[place + 1 :] if character.isalpha() else token[:place]
        yield token[:place] + token[place + 1 :]
    yield from (token + "0", token[:-1], token * 2, token.upper(), token.lower(), token.swapcase())
    yield from (token[:10] + " " + token[10:], token[:10] + "\t" + token[10:], "\xa0" + token, token + "\x85")
    yield from (token + "\0", token[:10] + "\0" + token[10:], f'"{token}"', f"<{token}>", f"{token},{token}")
    yield from (f"{token} {token}", f"{token};", token + "\xff", "\xef\xbb\xbf" + token, token[4:], "*", "null", "%")


def test_a_forged_token_is_refused_wherever_it_was_altered(scene: Scene) -> None:
    before = everything()

    for forged in forgeries(scene.ours.token):
        caller = scene.ours.with_token(forged)
        for answer in (caller.get("/api/v1/auth/me"), caller.post("contacts", {"external_id": "x"})):
            assert sound(answer, repr(forged)).status_code == 401
            assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
            assert scene.ours.token not in answer.text

    assert everything() == before


@pytest.mark.parametrize(
    "header",
    [
        "{token}",
        "Bearer",
        "Bearer\t{token}",
        "Bearer{token}",
        "Bearer={token}",
        "Bearer token={token}",
        "Bearer Bearer {token}",
        "Bearer {token}, Bearer {token}",
        "Bearer {token},Bearer {token}",
        "Basic {token}",
        "Token {token}",
        "Basic Og==, Bearer {token}",
        "\x00Bearer {token}",
    ],
)
def test_a_token_sent_in_another_way_is_none(scene: Scene, header: str) -> None:
    given = header.format(token=scene.ours.token)

    answer = scene.ours.get("/api/v1/auth/me", headers={"Authorization": given})

    assert sound(answer).status_code == 401


def test_two_tokens_are_none(scene: Scene) -> None:
    twice = [("Authorization", f"Bearer {scene.ours.token}"), ("Authorization", f"Bearer {scene.theirs.token}")]

    answer = scene.ours.client.get("/api/v1/auth/me", headers=twice)

    assert sound(answer).status_code == 401


@pytest.mark.parametrize("name", ["token", "access_token", "api_key", "key", "bearer", "Authorization"])
def test_a_token_anywhere_but_in_its_header_is_none(scene: Scene, name: str, subtests: pytest.Subtests) -> None:
    before = everything()
    token, client = scene.ours.token, scene.ours.client

    for operation in scene.operations:
        with subtests.test(str(operation)):
            path, body = scene.path(operation), {name: token} if operation.writes else None
            headers = {"Cookie": f"{name}={token}", "X-Api-Key": token, "X-Authorization": f"Bearer {token}"}
            answer = client.open(f"{path}?{name}={token}", method=operation.method, headers=headers, json=body)
            assert sound(answer, operation).status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"

    assert everything() == before


# Bodies: JSON

DEEP = 100_000
BROKEN = {
    "a deep list": b"[" * DEEP + b"]" * DEEP,
    "a deep list that does not end": b"[" * DEEP,
    "a deep object": b'{"a":' * 40_000 + b"1" + b"}" * 40_000,
    "a deep field": b'{"external_id": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a deep field that is a lone surrogate": b'{"external_id": ' + b"[" * 50_000 + b'"\\ud800"' + b"]" * 50_000 + b"}",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"external_id": "x"}'.encode("utf-16"),
    "UTF-16 without its mark": '{"external_id": "x"}'.encode("utf-16-le"),
    "UTF-32": '{"external_id": "x"}'.encode("utf-32"),
    "Latin-1": b'{"external_id": "\xe9"}',
    "overlong UTF-8": b'{"external_id": "\xc0\xaf"}',
    "overlong NUL": b'{"external_id": "\xc0\x80"}',
    "a surrogate in UTF-8": b'{"external_id": "\xed\xa0\x80"}',
    "beyond Unicode": b'{"external_id": "\xf4\x90\x80\x80"}',
    "half a surrogate pair": b'{"external_id": "\\ud800"}',
    "a pair in the wrong order": b'{"external_id": "\\udc00\\ud800"}',
    "half a surrogate pair in a key": b'{"\\udfff": 1}',
    "NUL": b'{"external_id": "a\\u0000"}',
    "NUL in a key": b'{"a\\u0000": 1}',
    "NUL as it is": b'{"external_id": "a\x00"}',
    "a line end in text": b'{"external_id": "a\nb"}',
    "NaN": b'{"external_id": NaN}',
    "Infinity": b'{"external_id": Infinity}',
    "minus Infinity": b'{"external_id": -Infinity}',
    "1e400": b'{"external_id": 1e400}',
    "a number of 5,000 digits": b'{"external_id": 1' + b"0" * 5000 + b"}",
    "a number of 200,000 digits": b'{"external_id": 1' + b"0" * 200_000 + b"}",
    "a fraction of 200,000 digits": b'{"external_id": 0.' + b"1" * 200_000 + b"}",
    "an exponent of 100,000 digits": b'{"external_id": 1e' + b"9" * 100_000 + b"}",
    "a number that begins with 0": b'{"external_id": 01}',
    "a hexadecimal number": b'{"external_id": 0x1}',
    "a key twice": b'{"external_id": "a", "external_id": "b"}',
    "a key twice, once escaped": b'{"external_id": "a", "external\\u005fid": "b"}',
    "a key twice, inside": b'{"external_id": "a", "custom_fields": {"a": 1, "a": 2}}',
    "a key twice, inside a list": b'{"external_id": "a", "x": [{"a": 1, "a": 1}]}',
    "one key 20,000 times": b"{" + b",".join([b'"external_id": 1'] * 10_000) + b"}",
    "a comment": b'{"external_id": "x" /* */}',
    "a comma too many": b'{"external_id": "x",}',
    "single quotes": b"{'external_id': 'x'}",
    "more behind it": b'{"external_id": "x"}{"external_id": "y"}',
    "20,000 fields": b"{" + b",".join(b'"f%d": 1' % number for number in range(20_000)) + b"}",
    "a prototype": b'{"__proto__": {"a": 1}, "constructor": 1, "__class__": 1}',
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_json_is_refused_quickly_by_every_write(scene: Scene, what: str, subtests: pytest.Subtests) -> None:
    before, began = everything(), time.thread_time()

    for operation in scene.writes:
        with subtests.test(str(operation)):
            answer = scene.ask(operation, data=BROKEN[what], content_type="application/json")
            assert answer.status_code in (400, 404, 415, 422)
            assert operation.body is None or answer.status_code in (400, 422)
            assert len(answer.data) < 100_000

    assert everything() == before
    seconds = (time.thread_time() - began) / len(scene.writes)  # of ours, however many others want the processor
    assert seconds < 0.2


def test_a_repeated_key_is_named(scene: Scene) -> None:
    answer = scene.ours.post("contacts", data=BROKEN["a key twice"], content_type="application/json")

    assert answer.status_code == 400
    assert "'external_id'" in answer.get_json(force=True)["detail"]


def test_a_key_may_be_there_once_in_each_object_and_in_text(scene: Scene) -> None:
    body = {"external_id": 'once: {"a": 1, "a": 2}', "custom_fields": {"external_id": ":", "email": "::"}}

    assert scene.ours.done(scene.ours.post("contacts", body))["status"] == "succeeded"


# Bodies: fields

NASTY = [
    *(None, True, False, 0, -1, 1.5, -0.0, 2**31, 2**53 + 1, 2**63, 2**64 - 1, 1e308, 5e-324),
    *([], [[]], {}, {"a": {}}, [None], [0], ["a"] * 2000, {"$ne": ""}, {"a": [{"b": {"c": []}}]}),
    *("", " ", "a\x01b", "\x7f", "\x85", "\u2028\u2029", "\u202ereversed", "\ufeff", "\ufffe", "\U0010ffff", "e\u0301"),
    *("x" * 300, "x" * 70_000, "🦄" * 20_000, "9" * 5000, "-9" * 100, "1e999", "NaN", "Infinity", "0x10"),
    *("'; DROP TABLE contacts; --", "' OR '1'='1", "%", "\\", "{{7*7}}", "${7*7}", "%s%s%n", "%(id)s"),
    *("../../../etc/passwd", "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "a\r\nSet-Cookie: x=1"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-14:00", "0000-01-01T00:00:00Z"),
    *("10000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2016-12-31T23:59:60Z"),
    *("2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00.9999999Z", "2026-W01-1T00:00:00Z", "٢٠٢٦-01-01T00:00:00Z"),
]


@pytest.fixture
def unlimited(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A token may make any number of requests."""
    monkeypatch.setenv("RATE_LIMIT", "0")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.mark.usefixtures("unlimited")
def test_a_field_may_hold_anything_and_is_refused_or_stored(scene: Scene, subtests: pytest.Subtests) -> None:
    for operation in scene.with_body:
        for name in operation.body.load_fields:
            with subtests.test(f"{operation} {name}"):
                for value in NASTY:
                    answer = scene.ask(operation, body={**(scene.body(operation) or {}), name: value})
                    assert answer.status_code in (200, 202, 404, 409, 413, 422), repr(value)
                scene.ours.apply()


TEXTS = [
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;b&gt; &amp; \"'", "</title><h1>"),
    *("a\tb\nc\rd", "\x01\x02\x1f\x7f\x80\x9f", "\u2028\u2029\u200b", "\u202eabc", "\ufeffabc", "\ufffe\uffff"),
    *("\U0010ffff🦄", "e\u0301 é", "  both ends  ", "", "\\u0000 \\x00 %00", "x" * 255, "🦄" * 255, "%s {0} {{a}} $1"),
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_text_is_stored_as_it_was_given(scene: Scene, text: str) -> None:
    given = {"first_name": text, "last_name": text, "custom_fields": {f"key {text}"[:100]: text}}

    contact = scene.ours.contact(external_id="text", **given)

    assert {name: contact[name] for name in ("first_name", "last_name")} == {"first_name": text, "last_name": text}
    assert contact["custom_fields"][f"key {text}"[:100]] == text


@pytest.mark.parametrize("number", [0, -1, 1.5, 0.1, 2**53, -(2**53), 1e-300, 5e-324, 123456789.123456789])
def test_a_number_is_stored_as_it_was_given(scene: Scene, number: float) -> None:
    contact = scene.ours.contact(external_id="number", custom_fields={"number": number})

    assert contact["custom_fields"]["number"] == number


# Bodies: media types and codings


@pytest.mark.parametrize(
    "kind",
    [
        *("text/plain", "text/html", "text/json", "application/xml", "application/x-www-form-urlencoded"),
        *("multipart/form-data; boundary=x", "application/octet-stream", "application/jsonp", "json", "/", "*/*"),
        *("application/json, text/html", "application/json\x00", "application/" + "j" * 5000),
        *("multipart/form-data", "", None),
    ],
)
def test_a_body_of_another_type_is_refused_by_every_write(
    scene: Scene, kind: str | None, subtests: pytest.Subtests
) -> None:
    before = everything()

    for operation in scene.writes:
        with subtests.test(str(operation)):
            answer = scene.ask(operation, data=json.dumps(scene.body(operation) or {"a": 1}), content_type=kind)
            assert answer.status_code == 415

    assert everything() == before


@cache
def bomb() -> bytes:
    """A body that is small, and thirty million characters when it is inflated."""
    return gzip.compress(b'{"external_id": "' + b"x" * 30_000_000 + b'"}', compresslevel=1)


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "deflate", "br", "identity, gzip", "x", ""])
def test_a_compressed_body_is_refused_and_not_inflated(scene: Scene, coding: str, subtests: pytest.Subtests) -> None:
    before, began = everything(), time.thread_time()

    for operation in scene.writes:
        with subtests.test(str(operation)):
            headers = {"Content-Encoding": coding}
            answer = scene.ask(operation, data=bomb(), content_type="application/json", headers=headers)
            assert answer.status_code in (400, 415)

    assert everything() == before
    assert time.thread_time() - began < 10  # of ours, however many others want the processor


@pytest.mark.parametrize("charset", ["utf-16", "utf-7", "latin-1", "x" * 1000, "\x00", '"'])
def test_a_charset_changes_nothing_of_how_a_body_is_read(scene: Scene, charset: str) -> None:
    body = '{"external_id": "+AGE-", "first_name": "é"}'.encode()

    answer = scene.ours.post("contacts", data=body, content_type=f"application/json; charset={charset}")

    assert sound(answer).status_code == 202
    contact_id = scene.ours.done(answer)["resource"]["id"]
    assert scene.ours.show_contact(contact_id)["external_id"] == "+AGE-"


# Requests that mean to be others


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "POST"])
def test_no_header_or_parameter_makes_a_read_a_write(scene: Scene, method: str, subtests: pytest.Subtests) -> None:
    before = everything()
    headers = {"X-HTTP-Method-Override": method, "X-HTTP-Method": method, "X-Method-Override": method}

    for operation in [operation for operation in scene.operations if operation.method == "GET"]:
        with subtests.test(str(operation)):
            assert scene.ask(operation, headers=headers).status_code == 200
            assert scene.ask(operation, f"{scene.path(operation)}?_method={method}").status_code == 422
            assert scene.ask(operation, headers=headers, json=scene.own).status_code == 200

    assert everything() == before


def test_a_key_of_a_read_is_ignored(scene: Scene, subtests: pytest.Subtests) -> None:
    before = everything()

    for operation in [operation for operation in scene.operations if not operation.writes]:
        for key in (str(uuid.uuid4()), "no key"):
            with subtests.test(str(operation)):
                answers = [scene.ask(operation, key=key) for _ in range(2)]
                assert [answer.status_code for answer in answers] == [200, 200]
                assert "Idempotent-Replayed" not in answers[1].headers

    assert everything() == before


EVIL = "evil.example"


def test_no_header_changes_the_addresses_in_an_answer(scene: Scene, subtests: pytest.Subtests) -> None:
    forwarded = {"X-Forwarded-Host": EVIL, "X-Forwarded-Proto": "ftp", "X-Forwarded-Prefix": f"/{EVIL}"}
    forwarded |= {"Host": EVIL, "Forwarded": f"host={EVIL};proto=ftp", "X-Original-URL": f"//{EVIL}", "Origin": EVIL}

    for operation in scene.operations:
        with subtests.test(str(operation)):
            for path in (scene.path(operation), scene.path(operation) + "/", "/" + scene.path(operation)):
                answer = scene.ask(operation, path, headers=forwarded)
                assert EVIL not in answer.text + str(answer.headers)
                assert "ftp:" not in answer.text + str(answer.headers)
    for path in ("/problems", "/problems/conflict", "/api/docs", "/api/v1/openapi.json", "/api//docs", "//problems"):
        answer = scene.fetch(path, **forwarded)
        assert EVIL not in answer.text + str(answer.headers), path
        assert answer.status_code in (200, 404), path


@pytest.mark.parametrize("host", ["", " ", "a b", "a,b", "[", "[::1", "%00", "x" * 5000, "é", "a:b:c", "a/b", "a@b"])
def test_a_host_that_is_none_breaks_nothing(scene: Scene, host: str) -> None:
    for operation in scene.lists:
        assert scene.ask(operation, environ_overrides={"HTTP_HOST": host}).status_code in (200, 400)


INJECTED = [
    *("x\r\nSet-Cookie: a=b", "x\nSet-Cookie: a=b", "x\rSet-Cookie: a=b", "x\x00", "x\x0b", "\x1b[2J", "é\x85"),
    *("x" * 8000, "<script>", "{{7*7}}", "%0d%0aSet-Cookie:%20a=b", "=?utf-8?q?=0d=0a?="),
]


# Together, those of which neither has a request refused before the other is read.
@pytest.mark.parametrize(
    "names", [("X-Request-Id", "Prefer"), ("User-Agent", "Idempotency-Key"), ("Traceparent", "Accept")], ids=str
)
def test_nothing_of_a_header_gets_into_those_of_the_answer(
    scene: Scene, names: tuple[str, str], subtests: pytest.Subtests
) -> None:
    for operation in scene.operations:
        with subtests.test(str(operation)):
            for value in INJECTED:
                # Past the test client, which refuses what a server never lets through.
                environ = {"HTTP_" + name.upper().replace("-", "_"): value for name in names}
                answer = scene.ask(operation, json=None, environ_overrides=environ)
                assert not any(value in header or "Set-Cookie" in header for _, header in answer.headers)
                assert not any("\r" in header or "\n" in header for _, header in answer.headers)


@pytest.mark.parametrize("text", ["%0d%0aSet-Cookie:%20a=b", "%0aSet-Cookie:a=b", "%E5%98%8A%E5%98%8DSet-Cookie:a"])
def test_nothing_of_a_path_gets_into_the_headers_of_the_answer(
    scene: Scene, text: str, subtests: pytest.Subtests
) -> None:
    for operation in scene.operations:
        paths = (
            scene.path(operation) + text,
            scene.path(operation) + "/" + text,
            f"{scene.path(operation)}?{text}",
            operation.path(text, scene.own),
            operation.path(scene.ours.workspace_id, dict.fromkeys(operation.nouns, text), name=text),
        )
        with subtests.test(str(operation)):
            for path in paths:
                answer = scene.ask(operation, path, json=None)
                assert not any("\r" in header or "\n" in header or "Cookie" in header for _, header in answer.headers)


# Paths and queries

CROOKED = [
    *("{path}/.", "{path}/..", "{path}/../", "{path}/%2e%2e", "{path}/%2e%2e/%2e%2e/jobs", "{path}/..%2f..%2fjobs"),
    *("{path}//", "{path}//x", "{path}/%2f", "{path}/%00", "{path}%00", "{path}%00.json"),
    *("{path};a=b", "{path}.json", "{path}%20", "{path}%0a", "{path}\\", "{path}%5c..", "{path}/%ff%fe", "{path}/é"),
    *("/{path}", "///{path}", "/%2f{path}", "/api/v1/..{path}", "/api/v1/%2e%2e{path}", "/.{path}", "/%2e{path}"),
    *("{path}/" + "a" * 8000, "{path}" + "/a" * 3000),
]


@pytest.mark.parametrize("shape", CROOKED, ids=lambda shape: shape[:30])
def test_a_crooked_path_leads_nowhere(scene: Scene, shape: str, subtests: pytest.Subtests) -> None:
    before = everything()

    # A path that ends with the name of a tag goes on for as long as that does.
    for operation in [operation for operation in scene.operations if "<path:" not in operation.rule]:
        with subtests.test(str(operation)):
            answer = scene.ask(operation, shape.format(path=scene.path(operation)), json=None)
            assert answer.status_code in (404, 405, 422)  # without a body, a PATCH is refused for that first

    assert everything() == before


@pytest.mark.parametrize("name", ["a//b", "a/../b", "../../jobs", "a;b", "%2e%2e", "a/", "/", "?", "a b", "é🦄"])
def test_a_tag_of_any_name_can_be_removed(scene: Scene, name: str) -> None:
    contact = scene.ours.contact(external_id="crooked", tags=[name])
    escaped = "".join(f"%{byte:02x}" for byte in name.encode())

    scene.ours.done(scene.ours.delete(f"contacts/{contact['id']}/tags/{escaped}"))

    assert name not in scene.ours.show_contact(contact["id"])["tags"]


@pytest.mark.parametrize(
    "path",
    [
        *("/api/docs/../setup.cfg", "/api/docs/..%2f..%2fsetup.cfg", "/api/docs/%2e%2e/openapi.py"),
        *("/api/docs//etc/passwd", "/api/docs/index.html", "/api/docs/swagger-ui.css%00"),
        *("/api/docs/swagger-ui.css/..", "/api/docs/C:%5cboot.ini"),
        *("/problems/../api/docs", "/problems/..%2fbase.html", "/problems/base.html", "/problems/%3Cscript%3E"),
        *("/problems/{{7*7}}", "/problems/conflict%00", "/problems/" + "a" * 8000),
        *("/static/x", "/.env", "/.git/config"),
        *("/%2e%2e/%2e%2e/etc/passwd", "/..%c0%af..%c0%afetc/passwd", "/%00", "/\\", "//evil.example/..", "/;/", "/*"),
    ],
)
def test_nothing_is_served_but_the_pages_that_there_are(scene: Scene, path: str) -> None:
    answer = sound(scene.fetch(path), path)

    assert answer.status_code == 404
    assert "<" not in answer.text


LONG = "x" * 100_000
QUERIES = [
    *("a=" + LONG, LONG + "=1", LONG, "&".join(f"p{number}=1" for number in range(2_000)), "limit=" + "9" * 5000),
    *("=" * 50_000, "%", "%zz", "%00", "%00=1", "a%00=1", "%ed%a0%80=1", "%ff=%ff", "limit=%00", "limit[]=1", "[]=1"),
    *("limit=1;limit=2", "limit=1&limit=1", "cursor=a&cursor=b", "limit=%EF%BC%91", "LIMIT=1", "limit=1%00"),
    *("__proto__=1", "limit=NaN", "limit=1e400", "limit=-0", "?limit=1", "limit%00=1", "%6cimit=0"),
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[:20])
def test_a_strange_query_is_refused_by_every_route(scene: Scene, query: str, subtests: pytest.Subtests) -> None:
    before = everything()

    for operation in scene.operations:
        with subtests.test(str(operation)):
            answer = scene.ask(operation, f"{scene.path(operation)}?{query}")
            assert answer.status_code == 422
            assert len(answer.data) < 400_000
            assert len(pointers(answer)) <= 100

    assert everything() == before


STRANGE = [
    *("", "%20", "%00", "%01", "%7f", "%c2%85", "%e2%80%ae", "%ff", "%ed%a0%80", "%f4%8f%bf%bf", "é", "x" * 50_000),
    *("9" * 5000, "-1", "1e400", "NaN", "null", "true", "{}", "[]"),
    *("'", "%27%20OR%201=1--", "%25", "_", "%5c", "%5c%27"),
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00%2B14:00", "0001-01-01T00:00:00%2B23:59", "0000-01-01T00:00:00Z"),
    *("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.999999-23:59"),
    "99999-01-01T00:00:00Z",
    *("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00%2B00:00:00.000001", "2026-W53-7T00:00:00Z", "20260101T000000Z"),
]


@pytest.mark.usefixtures("unlimited")
def test_a_filter_may_hold_anything_and_is_refused_or_finds(scene: Scene, subtests: pytest.Subtests) -> None:
    for operation in [operation for operation in scene.operations if operation.query]:
        for name in operation.query.load_fields:
            with subtests.test(f"{operation}?{name}"):
                for value in STRANGE:
                    answer = scene.ask(operation, f"{scene.path(operation)}?{name}={value}")
                    assert answer.status_code in (200, 404, 422), value


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("0001-01-01T00:00:00Z", 200),
        ("0001-01-01T00:00:00-14:00", 200),
        ("9999-12-31T23:59:59.999999Z", 200),
        ("9999-12-31T23:59:59%2B14:00", 200),
        ("0001-01-01T00:00:00%2B14:00", 422),
        ("9999-12-31T23:59:59-14:00", 422),
    ],
)
def test_a_time_at_the_end_of_the_calendar_is_a_time_if_utc_has_it(scene: Scene, moment: str, status: int) -> None:
    for filtered in ("contacts?updated_since", "webhooks/deliveries?since", "webhooks/deliveries?until"):
        for path in (filtered, f"/api/v1/{filtered}"):
            answer = sound(scene.ours.get(f"{path}={moment}&limit=1"), path)
            assert answer.status_code == status
            assert status == 200 or pointers(answer) == ["/" + filtered.partition("?")[2]]


# Secrets


def test_no_write_shows_a_secret_when_it_is_replayed(scene: Scene, subtests: pytest.Subtests) -> None:
    for operation in scene.writes:
        with subtests.test(str(operation)):
            key = str(uuid.uuid4())
            first = scene.ask(operation, key=key)
            scene.ours.apply()
            again, waited = scene.ask(operation, key=key), scene.ask(operation, key=key, wait=1)
            if first.status_code == 202:
                assert [answer.headers.get("Idempotent-Replayed") for answer in (again, waited)] == ["true", "true"]
            for answer in (again, waited):
                assert not re.search(r"whsec_|bhp_|sealed|gAAAAA", answer.text)


def test_no_page_or_document_holds_a_token(scene: Scene) -> None:
    for operation in scene.operations:
        assert not set(re.findall(r"bhp_\w+", scene.ask(operation).text)), operation
