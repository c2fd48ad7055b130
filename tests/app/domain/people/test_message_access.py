"""Who may read what messages say: one module decides for the API, pages, live updates and web chats."""

from __future__ import annotations

from collections import defaultdict

import pytest
from flask import Flask

from app.database import rows
from app.domain.people import message_access, roles
from app.errors import InsufficientScope
from app.live import listeners
from tests import pages
from tests.app.live.conftest import cookie
from tests.app.web.scenes import routes_of
from tests.cast import Api, one
from tests.surface import as_sent, furnish, operations
from tests.talks import receive

TEXT = "Only-in-what-was-written"


@pytest.fixture
def known(api: Api, app: Flask) -> dict[str, str]:
    """One of each resource, by noun; the message, its event and delivery, and the run have the text."""
    nouns = {noun for each in (*operations(app), *routes_of(app)) for noun in each.nouns}
    known = furnish(api, "ada@shop.example", nouns)
    message = receive(api.workspace_id, known["contact"], known["channel"], TEXT)
    api.apply()
    rows("UPDATE runs SET variables = json_build_object('reply', %s::text) WHERE id = %s", (TEXT, known["run"]))
    event_id = one("SELECT max(id) FROM events WHERE kind = 'message.received'")
    delivery_id = one("SELECT max(id) FROM deliveries WHERE event_id = %s", event_id)
    return (
        known
        | {"message": message.id, "event": event_id, "delivery": delivery_id}
        | {"conversation": message.conversation_id}
    )


def without_messages(monkeypatch: pytest.MonkeyPatch, *actions: str) -> None:
    """Agents may not do these any more."""
    fewer = {action: roles.ACTIONS[action] - {"agent"} for action in actions}
    monkeypatch.setattr(roles, "ACTIONS", {**roles.ACTIONS, **fewer})


def test_the_api_shows_texts_by_the_restriction_of_their_document(api: Api, app: Flask, known: dict[str, str]) -> None:
    shown = defaultdict(set)
    for operation in operations(app):
        if operation.method == "GET":
            sent = as_sent(operation.path(api.workspace_id, known))
            if TEXT in api.ask("GET", "/", environ_overrides=sent).text:
                shown[operation.restriction].add(operation.collection.split("/")[-1])

    assert shown == {
        message_access.MESSAGES: {"messages", "<message_id>"},
        message_access.EVENTS: {"events", "<event_id>", "<delivery_id>"},
        message_access.RUNS: {"runs", "<run_id>"},
        message_access.EXPORTS: {"export"},
    }


def test_pages_show_texts_to_roles_that_may_see_messages(
    api: Api, app: Flask, known: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = pages.member(app, api.workspace_id, "agent")
    paths = [route.path(api.workspace_id, known) for route in routes_of(app) if route.method == "GET"]

    def shown() -> list[str]:
        return [path for path in paths if TEXT in agent.client.get(path).text]

    assert len(shown()) >= 5
    without_messages(monkeypatch, message_access.SEE)
    assert shown() == []


def test_live_updates_are_for_roles_that_may_see_messages(
    api: Api, app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = pages.member(app, api.workspace_id, "agent")
    headers, query = {"cookie": cookie(agent)}, {"workspace": api.workspace_id}

    assert listeners.member(headers, query).workspace_id == api.workspace_id
    without_messages(monkeypatch, message_access.SEE)
    with pytest.raises(InsufficientScope):
        listeners.member(headers, query)
