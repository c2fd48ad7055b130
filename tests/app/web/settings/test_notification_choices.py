"""What a member is notified of: their choices, the bell's list, and what the script gets for the browser."""

from __future__ import annotations

import re

import pytest

from app.database import rows
from app.domain.people import notifications, roles
from app.models.members import Member
from tests.cast import Api, one
from tests.pages import Person
from tests.talks import assign, make_channel, receive

HOSTILE = "<script>alert(1)</script>"


def member_of(person: Person) -> Member:
    found: Member = Member.get(account_id=person.account_id)
    return found


def give(api: Api, person: Person, text: str = "Where is my order?", times: int = 1) -> str:
    """A conversation is assigned to the person, and its contact goes on; returns its identifier."""
    contact_id = str(api.contact(external_id="grace", first_name=HOSTILE)["id"])
    channel_id = make_channel(api.workspace_id)
    receive(api.workspace_id, contact_id, channel_id, text)
    assign(api.workspace_id, contact_id, member_of(person).id)
    for _ in range(times):
        conversation_id = receive(api.workspace_id, contact_id, channel_id, text).conversation_id
    return str(conversation_id)


def chosen(page: str) -> list[str]:
    return re.findall(r'name="chosen" value="([a-z_:]+)"[^>]* checked', page)


def test_everybody_begins_with_the_same_choices_and_keeps_their_own(owner: Person, agent: Person) -> None:
    assert chosen(agent.page("notifications/choices")) == list(notifications.DEFAULTS)

    answer = agent.post("notifications/choices", {"chosen": ["assigned:page", "woken:email"], "shows_texts": "true"})
    assert answer.location.endswith("/notifications/choices")
    agent.post("notifications/choices", {"chosen": ["assigned:page", "woken:email"]})

    page = agent.page("notifications/choices")
    assert chosen(page) == ["assigned:page", "woken:email"]
    assert 'name="shows_texts" value="true" aria' in page
    assert chosen(owner.page("notifications/choices")) == list(notifications.DEFAULTS)
    agent.post("notifications/choices", {})
    assert chosen(agent.page("notifications/choices")) == []


def test_what_is_no_choice_is_left_out(agent: Person) -> None:
    agent.post("notifications/choices", {"chosen": ["assigned:page", "assigned:fax", "x" * 5_000, "\ud7ff"]})

    assert member_of(agent).notices == ["assigned:page"]


def test_nobody_chooses_for_members_of_another_workspace(stranger: Person, support: Person, agent: Person) -> None:
    assert stranger.post("notifications/choices", {"chosen": ["assigned:page"]}).status_code == 404
    assert stranger.get("notifications/bell").status_code == 404
    support.visit()
    support.post("notifications/choices", {"chosen": ["assigned:page"]})

    assert "Support staff get no notifications" in support.page("notifications/choices")
    assert "data-told" not in support.page("notifications/bell")
    assert member_of(agent).notices is None


def test_the_bell_lists_a_conversation_once_with_its_number(agent: Person, owner: Person, api: Api) -> None:
    conversation_id = give(api, agent, times=3)

    bell = agent.get("notifications/bell").text
    assert 'data-unread="2"' in bell
    assert '<span class="count" aria-label="3 times">3</span>' in bell
    assert f"/workspaces/{api.workspace_id}/inbox/{conversation_id}" in bell
    assert "Where is my order?" in bell
    assert HOSTILE not in bell
    assert bell.count("<data ") == 2
    assert "Nothing new." in owner.page("notifications/bell")
    assert HOSTILE not in agent.get("notifications").text


def test_looking_at_the_conversation_reads_it(agent: Person, owner: Person, api: Api) -> None:
    conversation_id = give(api, agent)

    owner.page(f"inbox/{conversation_id}")
    assert 'aria-label="Notifications: 2 unread"' in agent.page("contacts")
    agent.page(f"inbox/{conversation_id}")

    assert 'aria-label="Notifications"' in agent.page("contacts")
    assert "Nothing new." in agent.page("notifications/bell")


def test_without_texts_the_browser_is_told_no_name_and_no_text(agent: Person, api: Api) -> None:
    give(api, agent)
    agent.post("notifications/choices", {"chosen": ["contact_wrote:browser"]})

    bell = agent.page("notifications/bell")

    assert "Nothing new." in bell
    assert 'data-title="Bellhop" data-text="A contact has written a message in a conversation of yours."' in bell
    assert "Where is my order?" not in bell
    assert 'data-unread="0"' in bell
    assert 'data-ignored="assigned mentioned woken new_conversation"' in bell


def test_a_role_that_does_not_see_the_inbox_hears_nothing_of_it(
    agent: Person, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(api, agent)
    monkeypatch.setitem(roles.ACTIONS, "messages.see", frozenset({"owner", "admin"}))  # type: ignore[index]

    assert "Nothing new." in agent.page("notifications/bell")
    assert "Where is my order?" not in agent.page("notifications")
    assert 'aria-label="Notifications"' in agent.page("contacts")


def test_a_page_in_the_background_makes_nobody_present(agent: Person) -> None:
    rows("UPDATE sessions SET seen_at = now() - interval '1 hour'")
    before = one("SELECT seen_at FROM sessions")

    agent.page("notifications/bell?background=true")
    assert one("SELECT seen_at FROM sessions") == before

    agent.page("notifications/bell")
    assert one("SELECT seen_at FROM sessions") > before


def test_the_bell_costs_as_much_for_many_as_for_few(agent: Person, api: Api, statements: list[str]) -> None:
    give(api, agent)
    agent.page("notifications/bell")
    few = len(statements)
    rows(
        """
        INSERT INTO notifications (id, workspace_id, kind, once, detail)
        SELECT 'ntf_01' || i, %s, 'new_conversation', i, '{"conversation_id": "cnv_1"}' FROM generate_series(1, 300) i
        """,
        (api.workspace_id,),
    )
    del statements[:]

    assert 'data-unread="2"' in agent.page("notifications/bell")
    assert len(statements) <= few
