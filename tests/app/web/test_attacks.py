"""Attacks on every page and action: none gains anything, and none gets a 5xx. New routes are found by themselves."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress

import pytest
from flask import Flask
from peewee import IntegrityError, InternalError, Model

from app.database import rows, savepoint, transaction
from app.domain.people import links, notifications, roles
from tests.app.web.scenes import OTHERS, Scene, sound, stored
from tests.cast import tables
from tests.copies import Copy


def test_the_routes_are_found_and_each_says_who_may_use_it(scene: Scene) -> None:
    assert len(scene.routes) > 40
    for route in scene.routes:
        assert ("<workspace>" in route.rule) == (route.action is not None), route
        assert not (route.is_public and (route.is_for_staff or route.action)), route


def test_no_form_without_its_token_changes_anything(scene: Scene, subtests: pytest.Subtests) -> None:
    others_token = scene.people["agent"].csrf_token()
    before = stored()

    for route in scene.writes:
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

    for route in scene.writes:
        with subtests.test(str(route)):
            assert scene.ask("owner", route, data={}, query_string={"csrf_token": token}).status_code == 400

    assert stored() == before


def test_looking_changes_nothing(scene: Scene, subtests: pytest.Subtests) -> None:
    """Browsers, mail servers and chats open links before anybody clicks on them, those of e-mails without a session."""
    owner = scene.people["owner"]
    tokens = {
        "/links/<token>": links.invite(owner.workspace_id, "next@ours.example", "agent").address.rpartition("/")[2],
        "/unsubscribe/<token>": notifications.unsubscribe_token(owner.account_id),
    }
    assert tokens.keys() == {route.rule for route in scene.routes if "token" in route.parameters}
    before = stored()

    for route in [route for route in scene.routes if not route.writes]:
        client = (
            scene.signed_out if route.is_public else scene.people["support" if route.is_for_staff else "owner"].client
        )
        path = route.path(owner.workspace_id, scene.own).replace(OTHERS["token"], tokens.get(route.rule, ""))
        for method in ("GET", "HEAD", "OPTIONS"):
            with subtests.test(f"{method} {route.rule}"):
                assert sound(client.open(path, method=method), route).status_code in (200, 303, 404)

    assert stored() == before


@pytest.mark.parametrize("who", [*roles.ROLES, "stranger"])
def test_members_cannot_visit_as_staff_do(scene: Scene, who: str) -> None:
    before = stored()

    answer = scene.people[who].post("visit/begin", {"reason": "Curious", "ticket": "T-1", "next": "/"})

    assert answer.status_code in (303, 403, 404)
    assert stored() == before


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
