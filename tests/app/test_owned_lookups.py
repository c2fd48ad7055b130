"""Every SELECT that looks for an identifier which a caller has sent names its owner in the same SELECT.

An owner in the statement around it does not help: a sub-query without one reveals what others have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app.database import Database, database
from app.lib import ids
from tests import pages, surface
from tests.app.api.test_chats import Page
from tests.cast import Api
from tests.chatting import make_chat

# What a row of a workspace, an account or a visitor is found by, besides its own identifier.
OWNERS = re.compile(r"\b(workspace_id|account_id|conversation_id|visitor_id|channel_id|token_hash|peer|email)\b")
# Where an identifier may be looked for alone, and why.
FREE = {
    "channels": "the address of a web chat is its channel's identifier; the visitor's token is checked against it",
    "workspaces": "support staff see every workspace, and a role is looked for before anything else is read",
}
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")
SCOPE = re.compile(r"\(\s*SELECT\b", re.IGNORECASE)


def scopes(statement: str) -> Iterator[str]:
    """The statement and each of its sub-queries, each without the sub-queries in it."""
    while found := list(SCOPE.finditer(statement)):
        start = found[-1].start()
        depth = 0
        for place in range(start, len(statement)):
            depth += {"(": 1, ")": -1}.get(statement[place], 0)
            if depth == 0:
                break
        yield statement[start : place + 1]
        statement = statement[:start] + "-" + statement[place + 1 :]
    yield statement


def unowned(statement: str, identifier: str) -> list[str]:
    """The parts of the statement that look for the identifier and name no owner."""
    found = [scope for scope in scopes(statement) if f"'{identifier}'" in scope and re.search(r"\bWHERE\b", scope)]
    return [
        scope
        for scope in found
        if not OWNERS.search(scope.partition("WHERE")[2])
        and not any(re.search(rf'\b(FROM|UPDATE) "?{table}\b', scope) for table in FREE)
    ]


@contextmanager
def statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is run meanwhile, as PostgreSQL gets it."""
    seen: list[str] = []
    run = Database._execute

    def note(self: Database, sql: Any, params: Any) -> Any:
        seen.append(database.connection().cursor().mogrify(sql, params or None).decode())
        return run(self, sql, params)

    with monkeypatch.context() as patched:
        patched.setattr(Database, "_execute", note)
        yield seen


def test_the_test_finds_a_sub_query_without_an_owner() -> None:
    statement = "SELECT 1 FROM a WHERE channel_id = 'chn_1' AND (at, id) < (SELECT at, id FROM a WHERE id = 'msg_1')"

    assert unowned(statement, "msg_1") == ["(SELECT at, id FROM a WHERE id = 'msg_1')"]
    assert unowned(statement.replace("= 'msg_1'", "= 'msg_1' AND conversation_id = 'cnv_1'"), "msg_1") == []


def test_every_operation_of_the_api_looks_for_identifiers_among_the_callers(
    app: Flask, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = surface.unknown()
    looked_for: set[str] = set()
    for operation in surface.operations(app):
        body = surface.sample(operation.body, known) if operation.body else None
        with statements(monkeypatch) as seen:
            api.client.open(
                operation.path(api.workspace_id, known),
                method=operation.method,
                json=body,
                headers={"Authorization": f"Bearer {api.token}"},
            )
        for identifier in known.values():
            looked_for |= {identifier for statement in seen if identifier in statement}
            assert [part for statement in seen for part in unowned(statement, identifier)] == [], operation
    assert len(looked_for) > 8


def test_every_page_looks_for_identifiers_among_the_viewers(
    app: Flask, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, known = pages.member(app, api.workspace_id), surface.unknown()
    looked_for: set[str] = set()
    for rule in app.extensions["pages"].url_map.iter_rules():
        if "GET" not in (rule.methods or ()) or not rule.arguments:
            continue
        values = {name: known.get(name.removesuffix("_id"), "vip") for name in rule.arguments}
        values |= {"workspace": api.workspace_id, "workspace_id": api.workspace_id}
        path = _PARAMETER.sub("{\\1}", str(rule)).format(**values)
        with statements(monkeypatch) as seen:
            person.client.get(path)
        for identifier in known.values():
            looked_for |= {identifier for statement in seen if identifier in statement}
            assert [part for statement in seen for part in unowned(statement, identifier)] == [], rule
    assert len(looked_for) > 5


def test_a_visitor_looks_only_into_its_own_conversation(
    client: FlaskClient, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, wanted = Page(client, make_chat(api.workspace_id)), ids.new("msg")
    page.say("Hello")

    with statements(monkeypatch) as seen:
        page.ask("GET", f"messages?before={wanted}")
        page.ask("POST", "read", {"message_id": wanted})

    assert any(wanted in statement for statement in seen)
    assert [part for statement in seen for part in unowned(statement, wanted)] == []
