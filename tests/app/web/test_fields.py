"""Every field of a form and every parameter of an address may hold anything. The views themselves tell which they are.

What is there is refused, left out or shown as text; none gets a 5xx, and none reaches what others have.
"""

from __future__ import annotations

import re
import time
from itertools import cycle
from urllib.parse import quote

import pytest
from werkzeug.test import TestResponse

from app.database import rows
from app.lib import ids
from tests.app.web.scenes import Route, Scene, plain, sound
from tests.forms import Fields, names_looked_for
from tests.surface import belongings, unknown

SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>"
STRANGE = ["%00", "\x00", "é", "' OR 1=1--", "x" * 5_000, "-1", "[]", "{{7*7}}", "../../etc/passwd", "\ud7ff", SCRIPT]
# What strangers write, and lists show.
FORMULAS = (
    *("contacts.first_name", "automations.name", "endpoints.address", "deliveries.last_error", "runs.reason"),
    *("jobs.trace_id", "audit_entries.actor_id", "workspaces.name"),
)
# Numbers beyond any, also where the beginning looks small; times that no zone has; what parsers may recurse into.
HOSTILE = [
    *("a\0b", "9" * 5_000, "0" * 20 + "9" * 30, "-1e999", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    *("[" * 70_000, "\u202e\U0010ffff\x85\r\nSet-Cookie: a=b", SCRIPT),
]


Names = dict[Route, list[str]]


@pytest.fixture(scope="module")
def known() -> Names:
    return {}


@pytest.fixture
def names(known: Names, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Names:
    """The names of parameters and fields, by route. What is behind the refusal of a form is in what the page shows."""
    for route in [route for route in scene.routes if route not in known]:
        if route.writes:
            scene = scene.put_back()
        fields = scene.forms.get(route.rule, []) if route.writes else []
        with names_looked_for(scene.app.extensions["pages"], monkeypatch) as seen:
            ask(scene, route, fields=fields)
        known[route] = [name for name in {**seen, **dict(fields)} if name != "csrf_token"]
    return known


def ask(scene: Scene, route: Route, known: dict[str, str] | None = None, **options: object) -> TestResponse:
    """A request of somebody who may make it; the answer is sound, and no markup of the request is in it."""
    answer = scene.ask("support" if route.is_for_staff else "owner", route, known, **options)
    assert "<script>alert" not in answer.text, route
    assert "<img src=x" not in answer.text, route
    assert not any(name == "Set-Cookie" and value.startswith("a=b") for name, value in answer.headers)
    return answer


def test_the_names_are_found(names: Names) -> None:
    by_rule = {str(route): those for route, those in names.items()}

    assert {"q"} <= set(by_rule["GET /dashboard/search"])
    assert {"endpoint_id", "status", "since", "after"} <= set(
        by_rule["GET /workspaces/<workspace>/dashboard/deliveries"]
    )
    assert {"name", "expires", "token_id"} <= set(
        by_rule["POST /workspaces/<workspace>/settings/developers/tokens/new"]
    )
    assert {"email", "role"} <= set(by_rule["POST /workspaces/<workspace>/settings/members/invite"])
    assert sum(map(len, names.values())) > 200


def test_an_address_may_hold_anything(scene: Scene, names: Names, subtests: pytest.Subtests) -> None:
    scene = scene.put_back()
    for route in [route for route in scene.routes if not route.writes]:
        with subtests.test(str(route)):
            for text in STRANGE:
                assert is_plain(ask(scene, route, query_string=dict.fromkeys(names[route], text)))
                if route.nouns:
                    crooked = dict.fromkeys(route.nouns, re.sub(r"[/?#%]", "x", text))
                    assert ask(scene, route, crooked).status_code == 404
            for name in names[route]:
                assert is_plain(ask(scene, route, query_string={name: SCRIPT}))


def is_plain(answer: TestResponse) -> bool:
    return answer.status_code in (200, 303, 404, 422)


def test_a_list_as_a_file_runs_no_formula(scene: Scene, names: Names, subtests: pytest.Subtests) -> None:
    scene = scene.put_back()
    for column in FORMULAS:
        rows(f"UPDATE {column.partition('.')[0]} SET {column.partition('.')[2]} = '=cmd|''x''!A0;=cmd|''y''!A0'")
    found = 0
    for route in [route for route in scene.routes if not route.writes and "format" in names[route]]:
        with subtests.test(str(route)):
            file = ask(scene, route, query_string={"format": "csv"})
            assert (file.status_code, file.mimetype) == (200, "text/csv")
            assert file.headers["Content-Disposition"].startswith("attachment; ")
            text = file.text.replace("'=cmd", "")
            assert "=cmd" not in text
            found += text != file.text
    assert found >= 5


def test_a_field_may_hold_anything(scene: Scene, names: Names, subtests: pytest.Subtests) -> None:
    # Each field gets a third of them, and fields of a kind, of which there are many, all of them.
    thirds = cycle(HOSTILE[begin::3] for begin in range(3))
    for route in [route for route in scene.routes if route.writes]:
        scene = scene.put_back()
        for name, third in zip(names[route], thirds, strict=False):
            with subtests.test(f"{route} {name}"):
                for value in third:
                    answer = ask(scene, route, fields=holding(scene.forms.get(route.rule, []), name, value))
                    assert answer.status_code in (200, 303, 404, 409, 413, 422, 429), value[:40]


def holding(fields: Fields, name: str, value: str) -> Fields:
    """The fields, with another value in this one."""
    return [*((each, kept) for each, kept in fields if each != name), (name, value)]


def test_an_address_reaches_nothing_of_another_workspace(scene: Scene, names: Names, subtests: pytest.Subtests) -> None:
    scene = scene.put_back()
    hidden = {*scene.foreign.values(), scene.theirs.workspace_id, "theirs.example"}
    for route in [route for route in scene.routes if route.action and not route.writes and names[route]]:
        with subtests.test(str(route)):
            for sought in (*scene.foreign.values(), "0.ada@theirs.example"):
                answer = ask(scene, route, query_string=dict.fromkeys(names[route], sought))
                assert is_plain(answer)
                said = answer.text.replace(sought, "").replace(quote(sought), "")
                assert [each for each in hidden if each in said] == []


def test_a_field_reaches_nothing_of_another_workspace(scene: Scene, names: Names, subtests: pytest.Subtests) -> None:
    not_theirs = {"link": ids.new("lnk"), "session": ids.new("ses"), **unknown()}
    tried = [
        (route, name, noun)
        for route in scene.routes
        for name in names[route]
        for noun in {name.removesuffix("_id")} & scene.foreign.keys()
        if route.action and route.writes
    ]

    assert len(tried) > 3
    for route, name, noun in tried:
        with subtests.test(f"{route} {name}"):
            answers = []
            for value in (scene.foreign[noun], not_theirs[noun]):
                scene = scene.put_back()
                before = belongings(scene.theirs.workspace_id)
                fields = holding(scene.forms.get(route.rule, []), name, value)
                answers.append(ask(scene, route, fields=fields))
                assert belongings(scene.theirs.workspace_id) == before
            theirs, nobodys = answers
            assert theirs.status_code == nobodys.status_code
            assert plain(theirs) == plain(nobodys)


FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"


def part(name: bytes, value: bytes, head: bytes = b"") -> bytes:
    return b'--x\r\nContent-Disposition: form-data; name="' + name + b'"' + head + b"\r\n\r\n" + value + b"\r\n"


# What comes after the token, of as many bytes as a form may have.
BOMBS = {
    "bytes that are no text": (FORM, b"&\xed\xa0\x80=\xff&%ff=%ed%a0%80&%00=%00"),
    "200,000 fields": (FORM, b"&a=1" * 200_000),
    "a million separators": (FORM, b"&" * 1_000_000),
    "a name of a million letters": (FORM, b"&" + b"a" * 1_000_000),
    "an escape in an escape": (FORM, b"&a=%" + b"25" * 400_000),
    "10,000 parts": (PARTS, part(b"a", b"1") * 10_000),
    "100,000 heads of a part": (PARTS, part(b"a", b"1", b"\r\nX-A: b" * 100_000)),
    "100,000 parameters of a part": (PARTS, part(b"a", b"1", b"; a*0=b" * 100_000)),
    "a part with a long name": (PARTS, part(b"a" * 900_000, b"1")),
    "what is almost an end": (PARTS, part(b"a", b"\r\n--" * 200_000)),
    "200,000 ends": (PARTS, b"--x\r\n" * 150_000),
    "a part in another alphabet": (PARTS, part(b"a", b"+AGE-", b"\r\nContent-Type: text/plain; charset=utf-7")),
    "a part in a part": (PARTS, part(b"a", b"--y\r\n" * 100_000, b"\r\nContent-Type: multipart/mixed; boundary=y")),
    "a file where text belongs": (PARTS, part(b"first_name", b"a" * 900_000, b'; filename="../../a"')),
}


@pytest.mark.parametrize("what", BOMBS)
@pytest.mark.parametrize("path", ["contacts/new", "contacts/import"])
def test_a_form_that_no_browser_sends_costs_little(scene: Scene, path: str, what: str) -> None:
    owner = scene.people["owner"]
    token, (content_type, more) = owner.csrf_token().encode(), BOMBS[what]
    begin, end = (b"csrf_token=" + token, b"") if content_type == FORM else (part(b"csrf_token", token), b"--x--\r\n")
    began = time.thread_time()

    answer = owner.client.post(owner.path(path), data=begin + more + end, content_type=content_type)

    assert sound(answer, path).status_code in (303, 400, 413, 422)
    assert time.thread_time() - began < 2  # of ours, however many others want the processor


def test_only_a_file_may_be_large(scene: Scene) -> None:
    owner = scene.people["owner"]
    fields = f"csrf_token={owner.csrf_token()}".encode() + b"&a=1" * 7_000_000
    began = time.thread_time()

    answer = owner.client.post(owner.path("contacts/import"), data=fields, content_type=FORM)

    assert answer.status_code == 413
    assert time.thread_time() - began < 2
