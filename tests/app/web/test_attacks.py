"""Attacks on every page and action: none gains anything, and none gets a 5xx. New routes are found by themselves."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from peewee import IntegrityError, InternalError, Model
from werkzeug.test import TestResponse

from app.database import rows, savepoint, transaction
from app.domain.people import links, roles
from tests import pages
from tests.cast import Api, found, tables
from tests.conftest import clear_redis
from tests.copies import Copy
from tests.pages import Person
from tests.surface import everything, furnish, unknown

SCRIPT = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>"
# Of these, a request changes when it was last seen, and nothing else.
SEEN = {"sessions"}
POLICY = {
    *("default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self' data:", "connect-src 'self'"),
    *("form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"),
}


@dataclass(frozen=True)
class Route:
    """A method of a page; `action` is None where it is about no workspace."""

    method: str
    rule: str
    is_public: bool
    is_for_staff: bool
    action: str | None

    def __str__(self) -> str:
        return f"{self.method} {self.rule}"

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def nouns(self) -> list[str]:
        return [name.removesuffix("_id") for name in re.findall(r"<(?:\w+:)?(\w+)>", self.rule) if name != "workspace"]

    def path(self, workspace_id: str, known: dict[str, str]) -> str:
        values = {"workspace": workspace_id} | {f"{noun}_id": value for noun, value in known.items()}
        return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: values.get(found[1], "vip"), self.rule)


def routes_of(app: Flask) -> list[Route]:
    """All routes, deletions last, so that what others need is still there."""
    made = app.extensions["pages"]
    found = [
        Route(method, rule.rule, access.get("public", False), access.get("staff", False), access.get("action"))
        for rule in made.url_map.iter_rules()
        for access in [made.view_functions[rule.endpoint].access]
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"})
    ]
    return sorted(found, key=lambda route: (route.writes, "delete" in route.rule or "erase" in route.rule, str(route)))


@dataclass(frozen=True)
class Scene:
    """Two workspaces, each with some of everything; the people of ours, a stranger of theirs, and support staff."""

    routes: list[Route]
    own: dict[str, str]
    foreign: dict[str, str]
    people: dict[str, Person]
    signed_out: FlaskClient
    theirs: Api

    def ask(self, who: str, route: Route, known: dict[str, str] | None = None, **options: Any) -> TestResponse:
        """A request by the form of the page, with its token, by somebody; about our workspace, unless said."""
        person = self.people[who]
        path = route.path(options.pop("workspace_id", person.workspace_id), self.own if known is None else known)
        if route.writes:
            fields = {"csrf_token": person.csrf_token(), "once": str(uuid.uuid4())}
            options.setdefault("data", fields)
        options.setdefault("headers", {"Accept": "text/html"})
        return sound(person.client.open(path, method=route.method, **options), route)


@pytest.fixture(scope="module")
def furnished(app: Flask, empty_for_module: None, client: FlaskClient) -> tuple[Scene, Copy]:
    ours, theirs = found(client, "Ours"), found(client, "Theirs")
    routes = routes_of(app)
    people = {role: pages.member(app, ours.workspace_id, role) for role in roles.ROLES}
    pages.member(app, theirs.workspace_id, "agent", "agent@theirs.example")
    stranger = pages.member(app, theirs.workspace_id, "owner", "eve@theirs.example")
    people["stranger"] = replace(stranger, workspace_id=ours.workspace_id)
    nouns = {noun for route in routes for noun in route.nouns}
    for api in (ours, theirs):
        api.restricted_to("contacts")  # a second token
    own, foreign = (
        furnish(api, f"ada@{name}", nouns) | {"link": links.invite(api.workspace_id, f"new@{name}", "agent").link_id}
        for api, name in ((ours, "ours.example"), (theirs, "theirs.example"))
    )
    people["support"] = pages.supporter(app, ours.workspace_id)
    return Scene(routes, own, foreign, people, app.extensions["pages"].test_client(), theirs), Copy()


@pytest.fixture
def scene(app: Flask, furnished: tuple[Scene, Copy]) -> Scene:
    found_scene, copy = furnished
    clear_redis()
    copy.put_back()
    people = {who: pages.anew(app, person) for who, person in found_scene.people.items()}
    return replace(found_scene, people=people, signed_out=app.extensions["pages"].test_client())


def sound(answer: TestResponse, about: object) -> TestResponse:
    """Asserts what holds for every answer: no 5xx, and nothing from elsewhere, inline or in a frame."""
    assert answer.status_code < 500, f"{about}: {answer.status_code}"
    policy = {part.strip() for part in answer.headers["Content-Security-Policy"].split(";")}
    assert policy == POLICY, about
    assert answer.headers["X-Frame-Options"] == "DENY", about
    assert answer.headers["X-Content-Type-Options"] == "nosniff", about
    assert answer.headers["Referrer-Policy"] == "same-origin", about
    assert answer.headers["Cache-Control"] == "no-store" or "/static/" in str(about), about
    assert len(answer.headers.getlist("X-Request-Id")) == 1, about
    assert "Traceback" not in answer.text, about
    return answer


def stored() -> dict[str, str]:
    return {table: digest for table, digest in everything().items() if table not in SEEN}


def writes(scene: Scene) -> Iterator[Route]:
    return (route for route in scene.routes if route.writes and not route.rule.startswith("/unsubscribe/"))


def test_the_routes_are_found_and_each_says_who_may_use_it(scene: Scene) -> None:
    assert len(scene.routes) > 40
    for route in scene.routes:
        assert ("<workspace>" in route.rule) == (route.action is not None), route
        assert not (route.is_public and (route.is_for_staff or route.action)), route


def test_who_has_not_signed_in_gets_the_form_and_changes_nothing(scene: Scene, subtests: pytest.Subtests) -> None:
    page = scene.signed_out.get("/sign-in").text
    token = re.search(r'name="csrf_token" value="([^"]+)"', page)
    assert token
    before = stored()

    for route in [route for route in scene.routes if not route.is_public]:
        with subtests.test(str(route)):
            path = route.path(scene.people["owner"].workspace_id, scene.own)
            answer = scene.signed_out.open(path, method=route.method, data={"csrf_token": token[1]})
            assert sound(answer, route).status_code == 303
            assert answer.location.startswith("/sign-in")

    assert stored() == before


def test_no_form_without_its_token_changes_anything(scene: Scene, subtests: pytest.Subtests) -> None:
    others_token = scene.people["agent"].csrf_token()
    before = stored()

    for route in writes(scene):
        for fields in ({}, {"csrf_token": ""}, {"csrf_token": others_token}, {"csrf_token": "x" * 10_000}):
            with subtests.test(f"{route} {str(fields)[:40]}"):
                assert scene.ask("owner", route, data={"once": str(uuid.uuid4()), **fields}).status_code == 400

    assert stored() == before


def test_only_mail_programs_may_send_a_form_without_its_token(app: Flask) -> None:
    assert app.extensions["pages"].extensions["csrf"]._exempt_views == {
        "app.web.settings.notification_pages.unsubscribe"
    }


def test_a_token_in_the_address_is_none(scene: Scene, subtests: pytest.Subtests) -> None:
    token = scene.people["owner"].csrf_token()
    before = stored()

    for route in writes(scene):
        with subtests.test(str(route)):
            assert scene.ask("owner", route, data={}, query_string={"csrf_token": token}).status_code == 400

    assert stored() == before


@pytest.mark.parametrize("role", roles.ROLES)
def test_a_role_sees_and_does_what_the_matrix_says(scene: Scene, role: str, subtests: pytest.Subtests) -> None:
    before = stored()
    for route in [route for route in scene.routes if route.action and not roles.may(role, route.action)]:
        with subtests.test(f"{route} refused"):
            assert scene.ask(role, route).status_code == 403
    assert stored() == before

    for route in [route for route in scene.routes if route.action and roles.may(role, route.action)]:
        with subtests.test(str(route)):
            assert scene.ask(role, route).status_code not in (400, 401, 403)


def test_pages_of_staff_are_not_there_for_members(scene: Scene, subtests: pytest.Subtests) -> None:
    before = stored()

    for route in [route for route in scene.routes if route.is_for_staff]:
        for who in (*roles.ROLES, "stranger"):
            with subtests.test(f"{route} {who}"):
                assert scene.ask(who, route).status_code == 404

    assert stored() == before


def test_another_workspace_looks_like_one_that_does_not_exist(scene: Scene, subtests: pytest.Subtests) -> None:
    before = stored()

    for route in [route for route in scene.routes if route.action]:
        with subtests.test(str(route)):
            ours = scene.ask("stranger", route)
            nobodys = scene.ask("stranger", route, unknown(), workspace_id=unknown()["workspace"])
            assert ours.status_code == nobodys.status_code == 404
            assert plain(ours) == plain(nobodys)

    assert stored() == before


def test_an_identifier_of_another_workspace_looks_like_one_that_nothing_has(
    scene: Scene, subtests: pytest.Subtests
) -> None:
    before = stored()

    for route in [route for route in scene.routes if route.action and route.nouns]:
        with subtests.test(str(route)):
            theirs, nobodys = (scene.ask("owner", route, known) for known in (scene.foreign, unknown()))
            assert theirs.status_code == nobodys.status_code
            assert theirs.status_code == 404 or (route.writes and theirs.status_code in (303, 422))
            assert plain(theirs) == plain(nobodys)

    assert stored() == before


def plain(answer: TestResponse) -> str:
    """The page without identifiers, its address, and what is new in every answer."""
    new = (
        r'csrf_token" value="[^"]+|once" value="[^"]+|<code>[^<]+</code>|href="[^"]+|value="/[^"]*|[a-z]+_[0-9a-z]{26}'
    )
    return re.sub(new, "", answer.text)


def test_staff_change_nothing_without_a_visit(scene: Scene, subtests: pytest.Subtests) -> None:
    before = stored()

    for route in [route for route in writes(scene) if route.action and "/visit/" not in route.rule]:
        if route.action in roles.SEEING:
            continue
        with subtests.test(str(route)):
            assert scene.ask("support", route).status_code == 403

    assert stored() == before


def test_staff_on_a_visit_hand_out_no_access(scene: Scene, subtests: pytest.Subtests) -> None:
    scene.people["support"].visit()
    before = stored()

    for route in [route for route in scene.routes if route.action in roles.NOT_FOR_SUPPORT]:
        with subtests.test(str(route)):
            assert scene.ask("support", route).status_code == 403

    assert stored() == before


@pytest.mark.parametrize("who", [*roles.ROLES, "stranger"])
def test_members_cannot_visit_as_staff_do(scene: Scene, who: str) -> None:
    before = stored()

    answer = scene.people[who].post("visit/begin", {"reason": "Curious", "ticket": "T-1", "next": "/"})

    assert answer.status_code in (303, 403, 404)
    assert stored() == before


STRANGE = ["%00", "\x00", "é", "' OR 1=1--", "x" * 5_000, "-1", "[]", "{{7*7}}", "../../etc/passwd", "\ud7ff", SCRIPT]
FILTERS = ["q", "after", "cursor", "status", "kind", "state", "since", "until", "endpoint_id", "error_code", "days"]
FILTERS += ["status_code", "contact_id", "automation_id", "tag", "format", "next", "group", "month", "page"]


def ask_strangely(scene: Scene, route: Route, query: dict[str, str], known: dict[str, str] | None = None) -> None:
    answer = scene.ask("support" if route.is_for_staff else "owner", route, known, query_string=query)
    assert answer.status_code in (200, 302, 303, 308, 404, 422), query
    assert "<script>alert" not in answer.text, query
    assert "<img src=x" not in answer.text, query


def test_anything_in_the_address_is_shown_as_text_or_left_out(scene: Scene, subtests: pytest.Subtests) -> None:
    for route in [route for route in scene.routes if not route.writes]:
        with subtests.test(str(route)):
            for text in STRANGE:
                ask_strangely(scene, route, dict.fromkeys(FILTERS, text))
                if route.nouns:
                    ask_strangely(scene, route, {}, dict.fromkeys(route.nouns, re.sub(r"[/?#%]", "x", text)))


def test_each_filter_may_hold_anything(scene: Scene, subtests: pytest.Subtests) -> None:
    for route in [route for route in scene.routes if not route.writes]:
        with subtests.test(str(route)):
            for name in FILTERS:
                ask_strangely(scene, route, {name: SCRIPT})


def nullable() -> dict[str, list[str]]:
    """The columns that may be null, by the tables of the models."""
    found: dict[str, list[str]] = {}
    for model in below(Model):
        table = model._meta.table_name
        columns = [field.column_name for field in model._meta.sorted_fields if field.null]
        found.setdefault(table, []).extend(columns)
    return {table: columns for table, columns in found.items() if columns and table in tables()}


def make_null(table: str, column: str) -> None:
    """Makes the column null where the table's rules allow it."""
    with suppress(IntegrityError, InternalError), savepoint("nulls"):
        rows(f"UPDATE {table} SET {column} = NULL WHERE {column} IS NOT NULL")


def below(parent: type) -> Iterator[type]:
    for child in parent.__subclasses__():
        yield child
        yield from below(child)


def test_every_page_is_shown_where_what_may_be_missing_is(scene: Scene, subtests: pytest.Subtests) -> None:
    copy = Copy()
    reads = [route for route in scene.routes if not route.writes and not route.is_public]
    people = {"owner": [route for route in reads if not route.is_for_staff], "support": reads}
    for table, columns in nullable().items():
        with transaction():
            for column in columns:
                make_null(table, column)
        for who, routes in people.items():
            for route in routes:
                with subtests.test(f"{route} without {table}'s {columns}, by {who}"):
                    scene.ask(who, route)
        copy.put_back()
