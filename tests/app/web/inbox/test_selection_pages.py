"""Several conversations at once: from the buttons of the list to what the next page says of it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from app.domain.inbox import selections
from app.lib import ids
from app.mailbox import serving
from tests.cast import Api, all_of, apply_until, one
from tests.pages import Person
from tests.talks import make_channel, receive

Say = Callable[..., str]


@pytest.fixture
def talks(say: Say) -> list[str]:
    return [say(name) for name in ("Ada", "Grace", "Mary")]


def send(person: Person, do: str, talks: list[str], query: str = "", **fields: Any) -> str:
    """Presses the button, and returns the text of the page that follows."""
    answer = person.post(f"inbox/selections{query}", {"do": do, "conversation_id": talks, **fields})
    assert answer.status_code == 303, answer.text
    return person.page(answer.location)


def test_ticked_ones_are_closed_and_the_page_says_how_many(agent: Person, talks: list[str]) -> None:
    assert "Closed 2 conversations." in send(agent, "close", talks[:2])
    assert all_of("SELECT status FROM conversations ORDER BY id") == ["closed", "closed", "open"]


@pytest.mark.parametrize(
    ("do", "fields", "column", "expected"),
    [
        ("label", {"label": "refund"}, "labels", ["refund"]),
        ("snooze", {"until": "in 2 hours"}, "snoozed_until IS NOT NULL", True),
        ("assign", {"assignee_id": "me"}, "assignee_id IS NOT NULL", True),
    ],
)
def test_each_button_does_what_it_says(
    agent: Person, talks: list[str], do: str, fields: dict[str, str], column: str, expected: object
) -> None:
    if "assignee_id" in fields:
        fields = {"assignee_id": one("SELECT id FROM members WHERE account_id = %s", agent.account_id)}

    send(agent, do, talks, **fields)

    assert all_of(f"SELECT {column} FROM conversations") == [expected] * 3


def test_all_of_a_view_are_changed_while_a_page_says_how_far_it_is(api: Api, agent: Person, talks: list[str]) -> None:
    answer = agent.post("inbox/selections?view=unassigned", {"do": "close", "all": "true"})

    assert "Closing all of the view." in agent.page(answer.location)
    assert "data-refresh" in agent.page(answer.location)
    api.apply()
    page = agent.page(answer.location)
    assert "Closed 3 conversations." in page
    assert "data-refresh" not in page


def test_a_change_is_stopped_before_it_begins_and_midway(
    api: Api, agent: Person, talks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selections, "PART", 1)
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0.0)  # so that each call of a worker does one part
    first, second = (
        agent.post("inbox/selections?view=unassigned", {"do": "label", "label": each, "all": "true"}).location
        for each in ("first", "second")
    )

    agent.post(first.replace("?", "/stop?"))
    apply_until(api.workspace_id, "SELECT 1 FROM selections WHERE changed > 0")
    pages = [main(agent.page(agent.post(second.replace("?", "/stop?")).location)) for _ in range(2)]
    api.apply()

    assert "Added the label to 0 conversations. It was stopped before it began." in agent.page(first)
    assert pages[0] == pages[1] == main(agent.page(second))
    assert "Added the label to 1 conversation. It was stopped; 2 stay as they are." in pages[0]
    assert "data-refresh" not in pages[0]
    assert sorted(all_of("SELECT labels FROM conversations")) == [[], [], ["second"]]


def main(page: str) -> str:
    """Without what stands above it: that changes are delayed, if the machine is busy."""
    return page.partition("<h1>")[2]


def test_a_second_click_changes_nothing_again(agent: Person, talks: list[str]) -> None:
    once = str(uuid.uuid4())
    first = send(agent, "close", talks, once=once)
    send(agent, "open", talks, "?view=closed")

    assert "Closed 3 conversations." in first
    assert "Closed 3 conversations." in send(agent, "close", talks, once=once)
    assert set(all_of("SELECT status FROM conversations")) == {"open"}
    assert one("SELECT count(*) FROM selections") == 2


def test_what_changed_meanwhile_is_said(api: Api, agent: Person, talks: list[str]) -> None:
    api.done(api.patch(f"conversations/{talks[0]}", {"status": "closed"}))

    assert "1 had changed meanwhile and stays as it is." in send(agent, "close", talks)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"do": "close"}, "Tick a conversation first."),
        ({"do": "close", "conversation_id": ["x"]}, "Tick a conversation first."),
        ({"do": "close", "conversation_id": [ids.new("cnv") for _ in range(201)]}, "Tick at most 200 conversations."),
        ({"do": "explode", "conversation_id": [ids.new("cnv")]}, "There is no such change."),
        ({"do": "label", "label": "", "conversation_id": [ids.new("cnv")]}, "A label has"),
        ({"do": "snooze", "until": "whenever", "conversation_id": [ids.new("cnv")]}, "This is no time"),
        ({"do": "assign", "assignee_id": "mem_x", "conversation_id": [ids.new("cnv")]}, "no such member"),
    ],
)
def test_what_cannot_be_done_is_said(agent: Person, fields: dict[str, Any], said: str) -> None:
    answer = agent.post("inbox/selections", fields)
    assert said in agent.page(answer.location)

    answer = agent.post("inbox/selections", fields, headers={"Accept": "application/json"})
    assert answer.status_code == 422
    assert said in answer.json["said"]
    assert one("SELECT count(*) FROM selections") == 0


@pytest.mark.parametrize("query", ["?view=closed", "?q=hello", "?view=waiting&label=x"])
def test_lists_without_an_exact_number_are_not_changed_whole(agent: Person, talks: list[str], query: str) -> None:
    assert "only conversations that are ticked" in send(agent, "close", [], query, all="true")


def test_a_script_is_told_what_was_done_or_where_it_goes_on(agent: Person, talks: list[str]) -> None:
    as_script = {"headers": {"Accept": "application/json"}}

    done = agent.post("inbox/selections", {"do": "close", "conversation_id": talks[:1]}, **as_script).json
    begun = agent.post("inbox/selections?view=all", {"do": "close", "all": "true"}, **as_script).json

    assert done == {"said": "Closed 1 conversation.", "address": None}
    assert "/inbox/selections/sel_" in begun["address"]


def test_found_conversations_are_changed_whatever_they_are(api: Api, agent: Person, talks: list[str]) -> None:
    api.done(api.patch(f"conversations/{talks[0]}", {"status": "closed"}))

    said = send(agent, "label", talks, "?q=hello", label="seen")

    assert "Added the label to 3 conversations." in said


def test_conversations_of_another_workspace_stay_as_they_are(others: Api, agent: Person) -> None:
    contact = others.contact(external_id="x")["id"]
    theirs = receive(others.workspace_id, contact, make_channel(others.workspace_id)).conversation_id

    assert "Closed 0 conversations." in send(agent, "close", [str(theirs)])
    assert one("SELECT status FROM conversations") == "open"


def test_how_far_it_is_is_not_shown_to_others(agent: Person, stranger: Person, talks: list[str]) -> None:
    agent.post("inbox/selections", {"do": "close", "conversation_id": talks})
    selection_id = one("SELECT id FROM selections")

    assert agent.get(f"inbox/selections/{selection_id}").status_code == 200
    assert stranger.get(f"inbox/selections/{selection_id}").status_code == 404
    assert agent.get(f"inbox/selections/{ids.new('sel')}").status_code == 404


def test_support_needs_a_visit(support: Person, talks: list[str]) -> None:
    assert 'name="conversation_id"' not in support.page("inbox")
    assert support.post("inbox/selections", {"do": "close", "conversation_id": talks}).status_code == 403
    support.visit()
    assert "Closed 3 conversations." in send(support, "close", talks)
