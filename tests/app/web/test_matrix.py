"""Everybody at every page and form: what each gets is what the roles say. A new route is in it by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from app.database import rows
from app.domain.people import members, roles, support_accounts
from app.lib import ids
from app.models.visits import Visit
from tests.app.web.scenes import OTHERS, Route, Scene, plain, sound, stored
from tests.surface import unknown

# What a form or page that is allowed may answer: forms are sent as the page shows them, and some need more.
DONE, IS_MISSING = {200, 204, 303, 409, 422}, {404}


@dataclass(frozen=True)
class Guest:
    """Somebody at our door: who of the scene it is, what has happened since they signed in, and what they are now."""

    person: str
    happened: Callable[[Scene], object]
    role: str | None = None
    is_support: bool = False
    is_visiting: bool = False

    def gets(self, route: Route) -> set[int]:
        """The statuses of which the answer has one."""
        if route.is_for_staff:
            return DONE if self.is_support else IS_MISSING
        if "session" in route.nouns:  # that of the owner
            return DONE if self.role == "owner" else IS_MISSING
        if route.action is None:
            return DONE
        if self.role is not None:
            return DONE if roles.may(self.role, route.action) else {403}
        if not self.is_support:
            return IS_MISSING
        may = roles.support_may(route.action, self.is_visiting)
        # A page shows what a visit would allow, and its form asks for one.
        shows = not route.writes and roles.support_may(route.action, visiting=True)
        return DONE if may or shows else {403}


def nothing(scene: Scene) -> None:
    """Nothing has happened."""


def leave(scene: Scene) -> None:
    agent = scene.people["agent"]
    member = members.of_account(agent.workspace_id, agent.account_id)
    assert member is not None
    members.remove(agent.workspace_id, member.id, None)


def begin_visit(scene: Scene, workspace_id: str | None = None) -> Visit:
    support = scene.people["support"]
    return support_accounts.begin_visit(support.account_id, workspace_id or support.workspace_id, "Curious", "T-1")


def begin_visit_elsewhere(scene: Scene) -> None:
    begin_visit(scene, scene.theirs.workspace_id)


def end_visit(scene: Scene) -> None:
    support_accounts.end_visit(begin_visit(scene).id)


def outstay(scene: Scene) -> None:
    begin_visit(scene)
    rows("UPDATE visits SET expires_at = now() - interval '1 second'")


def resign(scene: Scene) -> None:
    begin_visit(scene)
    rows("UPDATE accounts SET is_support = false")


def belong_here(scene: Scene) -> None:
    """Support staff of old, who are owners of the workspace."""
    support = scene.people["support"]
    members.add(support.workspace_id, support.account_id, "owner")


def belong_here_and_begin_a_visit(scene: Scene) -> None:
    belong_here(scene)
    begin_visit(scene)


GUESTS: Mapping[str, Guest] = {
    **{role: Guest(role, nothing, role) for role in roles.ROLES},
    "the owner of another workspace": Guest("stranger", nothing),
    "the owner of another workspace who is an agent here": Guest("both", nothing, "agent"),
    "a member who was removed": Guest("agent", leave),
    "support without a visit": Guest("support", nothing, is_support=True),
    "support on a visit": Guest("support", begin_visit, is_support=True, is_visiting=True),
    "support on a visit elsewhere": Guest("support", begin_visit_elsewhere, is_support=True),
    "support whose visit has ended": Guest("support", end_visit, is_support=True),
    "support whose visit has expired": Guest("support", outstay, is_support=True),
    "support who is an owner here": Guest("support", belong_here, is_support=True),
    "support on a visit who is an owner here": Guest(
        "support", belong_here_and_begin_a_visit, is_support=True, is_visiting=True
    ),
    "who was support, and is on a visit": Guest("support", resign),
}


def test_every_identifier_in_a_path_has_something_to_name(scene: Scene) -> None:
    nouns = {noun for route in scene.routes for noun in route.nouns}
    names = {name for route in scene.routes for name in route.parameters if not name.endswith("_id")}

    assert len(scene.routes) > 90
    assert nouns <= scene.own.keys() & scene.foreign.keys()
    assert names <= OTHERS.keys()
    assert [noun for noun in nouns if scene.own[noun] == scene.foreign[noun]] == []


@pytest.mark.parametrize("guest", GUESTS)
def test_everybody_gets_what_the_roles_say(scene: Scene, guest: str, subtests: pytest.Subtests) -> None:
    who = GUESTS[guest]
    routes = [route for route in scene.routes if not route.is_public and route.rule != "/sign-out"]
    who.happened(scene)

    before = stored()
    for route in [route for route in routes if who.gets(route) != DONE]:
        with subtests.test(f"{route} is not for {guest}"):
            assert scene.ask(who.person, route).status_code in who.gets(route)
    assert stored() == before

    for route in [route for route in routes if who.gets(route) == DONE]:
        with subtests.test(f"{route} is for {guest}"):
            if route.writes:  # another may have used up what this one is about
                scene = scene.put_back()
                who.happened(scene)
            assert scene.ask(who.person, route, fields=scene.forms.get(route.rule, ())).status_code in DONE


def test_support_changes_nothing_outside_of_a_visit(scene: Scene, subtests: pytest.Subtests) -> None:
    before = {table: rows for table, rows in stored().items() if table not in ("sessions", "accounts")}
    own = ("/account/", "/sign-out", "/visit/begin", "/sign-in", "/forgotten", "/links/", "/unsubscribe/")

    for route in [route for route in scene.writes if not any(part in route.rule for part in own)]:
        with subtests.test(str(route)):
            answer = scene.ask("support", route, fields=scene.forms.get(route.rule, ()))
            if answer.status_code == 403:
                assert "First say why" in answer.text or "not even during a visit" in answer.text

    assert {table: rows for table, rows in stored().items() if table in before} == before


NOBODY = {
    "session has expired": "UPDATE sessions SET expires_at = now() - interval '1 second'",
    "session was not used for a week": "UPDATE sessions SET seen_at = now() - interval '7 days 1 second'",
    "session was ended": "UPDATE sessions SET ended_at = now()",
    "session never was": "DELETE FROM sessions",
}


@pytest.mark.parametrize("why", NOBODY)
def test_who_has_not_signed_in_gets_the_form_and_changes_nothing(
    scene: Scene, why: str, subtests: pytest.Subtests
) -> None:
    owner = scene.people["owner"]
    fields = {"csrf_token": owner.csrf_token()}
    rows(NOBODY[why])
    before = stored()

    for route in [route for route in scene.routes if not route.is_public]:
        with subtests.test(f"{route}, whose {why}"):
            path = route.path(owner.workspace_id, scene.own)
            answer = sound(owner.client.open(path, method=route.method, data=fields), route)
            assert (answer.status_code, answer.location.partition("?")[0]) == (303, "/sign-in")

    assert stored() == before


def test_another_workspace_looks_like_one_that_does_not_exist(scene: Scene, subtests: pytest.Subtests) -> None:
    before = stored()

    for route in [route for route in scene.routes if route.action]:
        with subtests.test(str(route)):
            ours = scene.ask("stranger", route)
            nobodys = scene.ask("stranger", route, scene.foreign, workspace_id=unknown()["workspace"])
            assert ours.status_code == nobodys.status_code == 404
            assert plain(ours) == plain(nobodys)

    assert stored() == before


@pytest.mark.parametrize("guest", ["owner", "support on a visit"])
def test_an_identifier_of_another_workspace_looks_like_one_that_nothing_has(
    scene: Scene, guest: str, subtests: pytest.Subtests
) -> None:
    who = GUESTS[guest]
    who.happened(scene)
    not_theirs = {"link": ids.new("lnk"), "session": ids.new("ses"), **unknown()}
    before = stored()

    for route in [route for route in scene.routes if route.nouns and who.gets(route) == DONE]:
        with subtests.test(f"{route} by {guest}"):
            fields = scene.forms.get(route.rule, ())
            theirs, nobodys = (
                scene.ask(who.person, route, known, fields=fields) for known in (scene.foreign, not_theirs)
            )
            assert theirs.status_code == nobodys.status_code == 404
            assert plain(theirs) == plain(nobodys)

    assert stored() == before
