"""E-mail about conversations: to those who are away, about what they want to know and have not read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.database import rows
from app.domain.people import conversation_notifications, emails, notifications, roles, sessions
from app.lib import clock
from tests.cast import Api, one
from tests.mail_server import MailServer
from tests.people import make_member, signed_in
from tests.talks import add_note, assign, close, make_channel, receive

pytestmark = pytest.mark.usefixtures("mail_server")


@pytest.fixture
def agent(api: Api) -> str:
    """An agent's member identifier, who has no session."""
    return str(make_member(api.workspace_id, "agent@example.com", "agent")[1].id)


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(external_id="grace", first_name="Grace")["id"])


@pytest.fixture
def write(api: Api, contact_id: str) -> Callable[..., str]:
    """The contact writes; returns the conversation's identifier."""
    channel_id = make_channel(api.workspace_id)

    def write(times: int = 1) -> str:
        for _ in range(times):
            message = receive(api.workspace_id, contact_id, channel_id, "I am Grace")
        return str(message.conversation_id)

    return write


@pytest.fixture
def conversation_id(api: Api, write: Callable[..., str], contact_id: str, agent: str) -> str:
    """A conversation that was assigned to the agent."""
    found = write()
    assign(api.workspace_id, contact_id, agent)
    return found


def send_after(minutes: int) -> int:
    """Announces what is new, and sends what is due by then."""
    notifications.announce()
    with clock.moved_by(minutes=minutes):
        return emails.send_due()


def test_who_is_away_is_sent_one_email_without_names_and_texts(
    mail_server: MailServer, api: Api, conversation_id: str, write: Callable[..., str]
) -> None:
    write(20)

    assert send_after(minutes=2) == 1

    [message] = mail_server.received
    text = message.get_content()
    assert message["To"] == "agent@example.com"
    assert "A conversation was assigned to you." in text
    assert "A contact has written 20 messages in a conversation of yours." in text
    assert f"/workspaces/{api.workspace_id}/inbox/{conversation_id}\r\n" in text
    assert "Grace" not in str(message)
    assert message["List-Unsubscribe"]
    write()
    assert send_after(minutes=30) == 0
    assert send_after(minutes=63) == 1


def test_who_is_here_is_sent_nothing_until_they_have_been_away(
    mail_server: MailServer, api: Api, agent: str, conversation_id: str
) -> None:
    [(account_id,)] = rows("SELECT account_id FROM members WHERE id = %s", (agent,))
    rows("UPDATE notifications SET is_announced = false")
    session = sessions.begin(account_id, "127.0.0.1", "tests")
    # Whoever came back after it has seen it in the page.
    rows("UPDATE sessions SET seen_at = now() - interval '2 minutes'")
    assert send_after(minutes=2) == 0
    assert one("SELECT count(*) FROM emails") == 1

    assert send_after(minutes=9) == 1
    assert session not in str(mail_server.received[0])


def test_what_came_before_somebody_looked_is_not_sent(
    mail_server: MailServer, agent: str, conversation_id: str
) -> None:
    [(account_id,)] = rows("SELECT account_id FROM members WHERE id = %s", (agent,))
    sessions.begin(account_id, "127.0.0.1", "tests")

    assert send_after(minutes=2) == 0
    assert send_after(minutes=20) == 0

    assert mail_server.received == []
    assert one("SELECT count(*) FROM emails") == 0


@pytest.mark.parametrize("ending", ["read", "read in the list", "closed", "reassigned", "not wanted", "unsubscribed"])
def test_what_needs_nobody_any_more_when_it_is_sent_is_left_out(
    mail_server: MailServer, api: Api, agent: str, contact_id: str, conversation_id: str, ending: str
) -> None:
    notifications.announce()
    assert one("SELECT count(*) FROM emails") == 1
    {
        "read": lambda: conversation_notifications.read(conversation_id, agent),
        "read in the list": lambda: notifications.mark_read(agent, one("SELECT max(id) FROM notifications")),
        "closed": lambda: close(api.workspace_id, contact_id),
        "reassigned": lambda: assign(api.workspace_id, contact_id, None),
        "not wanted": lambda: notifications.choose(agent, ["assigned:page"], shows_texts=True),
        "unsubscribed": lambda: notifications.want_email(
            one("SELECT account_id FROM members WHERE id = %s", agent), wanted=False
        ),
    }[ending]()

    assert send_after(minutes=2) == 0

    assert mail_server.received == []
    assert one("SELECT count(*) FROM emails") == 0


def test_a_mention_in_a_conversation_that_was_closed_is_not_sent(
    mail_server: MailServer, api: Api, agent: str, contact_id: str, conversation_id: str
) -> None:
    conversation_notifications.read(conversation_id, agent)
    add_note(api, conversation_id, mentions=[agent])
    close(api.workspace_id, contact_id)

    assert send_after(minutes=2) == 0


def test_a_role_that_does_not_see_the_inbox_is_told_nothing(
    mail_server: MailServer, api: Api, agent: str, conversation_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(roles.ACTIONS, "messages.see", frozenset({"owner"}))  # type: ignore[index]

    assert notifications.bell(agent).unread == 0
    assert send_after(minutes=2) == 0


def test_new_conversations_are_one_email_to_those_who_want_it(
    mail_server: MailServer, api: Api, others: Api, write: Callable[..., str], agent: str
) -> None:
    make_member(api.workspace_id, "bob@example.com", "agent")
    stranger = make_member(others.workspace_id, "stranger@example.com")[1]
    for member_id in (agent, stranger.id):
        notifications.choose(member_id, ["new_conversation:email"], shows_texts=True)
    write(3)
    for number in range(4):
        other = str(api.contact(external_id=str(number))["id"])
        receive(api.workspace_id, other, one("SELECT id FROM channels"))

    assert send_after(minutes=2) == 1

    [message] = mail_server.received
    assert message["To"] == "agent@example.com"
    assert message["Subject"] == "5 notifications from Bellhop"


def test_nobody_is_here_by_a_session_that_has_ended(api: Api) -> None:
    account, _ = make_member(api.workspace_id)
    assert sessions.last_use(account.id) is None
    signed_in(account)
    assert sessions.last_use(account.id) is not None
    sessions.end_all(account.id)
    assert sessions.last_use(account.id) is None
