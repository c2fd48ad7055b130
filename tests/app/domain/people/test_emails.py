from __future__ import annotations

import re
from typing import Any

import pytest

from app.database import rows
from app.domain.people import accounts, emails, links, members, notifications
from app.lib import clock, ids
from tests.cast import Api, everything_stored, in_threads, one
from tests.mail_server import MailServer
from tests.people import make_account, make_member


@pytest.fixture
def server(mail_server: MailServer) -> MailServer:
    """The server that SMTP_URL names."""
    return mail_server


def note(workspace_id: str, once: str = "one") -> None:
    """Something happens."""
    detail = {"import_id": once, "total": 3, "done": 3, "failed": 0}
    notifications.note(workspace_id, "import_ended", once, detail)


def send_soon() -> int:
    """Announces, and sends what is due in two minutes."""
    notifications.announce()
    with clock.moved_by(minutes=2):
        return emails.send_due()


def link_in(server: MailServer) -> str:
    """The token of the link in the last message."""
    found = re.search(r"https://bellhop\.test/links/(\S+)", server.received[-1].get_content())
    assert found
    return found[1]


def waiting() -> int:
    return int(one("SELECT count(*) FROM emails"))


def test_an_invitation_is_sent_with_a_link_that_works(server: MailServer, api: Api) -> None:
    made = links.invite(api.workspace_id, "ada@example.com", "agent")
    emails.arrange_invitation(made.link_id)

    assert emails.send_due() == 1

    [message] = server.received
    assert (message["To"], message["From"]) == ("ada@example.com", "Bellhop <bellhop@bellhop.test>")
    assert message["Subject"] == "You are invited to Ours"
    assert (message["Auto-Submitted"], message["List-Unsubscribe"]) == ("auto-generated", None)
    assert message["Date"]
    assert message["Message-ID"].endswith("@bellhop.test>")
    links.use(link_in(server), "a new password")
    assert [person.email for person in members.of_workspace(api.workspace_id)] == ["ada@example.com"]
    assert (waiting(), emails.send_due()) == (0, 0)


def test_an_invitation_that_was_withdrawn_or_replaced_is_not_sent(server: MailServer, api: Api) -> None:
    for email in ("ada@example.com", "ada@example.com", "bob@example.com"):
        emails.arrange_invitation(links.invite(api.workspace_id, email, "agent").link_id)
    links.withdraw(api.workspace_id, links.invitations(api.workspace_id)[0].link_id, None)

    assert emails.send_due() == 1

    assert (server.recipients, waiting()) == (["ada@example.com"], 0)


def test_a_link_to_reset_the_password_is_sent_to_who_has_an_account(server: MailServer) -> None:
    account = make_account()
    emails.arrange_reset("ADA@example.com")
    emails.arrange_reset("nobody@example.com")

    assert emails.send_due() == 1

    assert server.recipients == ["ada@example.com"]
    links.use(link_in(server), "a new password")
    assert accounts.verify(account.email, "a new password") is not None
    assert waiting() == 0


def test_asking_again_while_one_waits_arranges_no_second(server: MailServer) -> None:
    make_account()
    for email in ("ada@example.com", "Ada@example.com", "ada@example.com"):
        emails.arrange_reset(email)

    assert emails.send_due() == 1


@pytest.mark.parametrize("address", ["x" * 300, "a\0b@example.com"])
def test_what_can_be_nobodys_address_is_not_kept(server: MailServer, address: str) -> None:
    emails.arrange_reset(address)

    assert waiting() == 0


def test_a_stranger_cannot_have_many_links_sent_to_somebody(server: MailServer) -> None:
    make_account()
    for _ in range(5):
        emails.arrange_reset("ada@example.com")
        emails.send_due()

    assert len(server.received) == 3
    with clock.moved_by(hours=1, minutes=1):
        emails.arrange_reset("ada@example.com")
        assert emails.send_due() == 1


def test_no_link_is_stored(server: MailServer, api: Api) -> None:
    make_account()
    emails.arrange_reset("ada@example.com")
    emails.send_due()
    emails.arrange_invitation(links.invite(api.workspace_id, "bob@example.com", "agent").link_id)
    server.answers["CONTENT"] = "451 later"
    emails.send_due()

    assert link_in(server) not in everything_stored()


def test_what_happened_is_told_in_one_email(server: MailServer, api: Api, others: Api) -> None:
    owner, _ = make_member(api.workspace_id)
    members.add(others.workspace_id, owner.id, "owner")
    note(api.workspace_id, "imp_1")
    note(others.workspace_id, "imp_2")

    assert send_soon() == 1

    [message] = server.received
    text = message.get_content()
    assert message["Subject"] == "2 notifications from Bellhop"
    assert "Ours: An import of contacts ended: 3 of 3 lines were imported." in text
    assert "Theirs: An import of contacts ended" in text
    assert f"https://bellhop.test/workspaces/{api.workspace_id}/contacts/imports/imp_1" in text
    assert (waiting(), send_soon()) == (0, 0)


def test_somebody_is_told_of_their_own_mentions_alone(server: MailServer, api: Api) -> None:
    make_member(api.workspace_id)
    agent, member = make_member(api.workspace_id, "agent@example.com", "agent")
    note(api.workspace_id)
    rows(
        "INSERT INTO notifications (id, workspace_id, member_id, kind, once, detail)"
        """ VALUES (%s, %s, %s, 'mentioned', 'x', '{"conversation_id": "cnv_1"}')""",
        (ids.new("ntf"), api.workspace_id, member.id),
    )

    assert send_soon() == 2

    texts = {message["To"]: message.get_content() for message in server.received}
    told = {address: ("import" in text, "mentioned in a note" in text) for address, text in texts.items()}
    assert told == {"ada@example.com": (True, False), agent.email: (False, True)}
    path = f"/workspaces/{api.workspace_id}/inbox/cnv_1"
    assert f"https://bellhop.test{path}\r\n" in texts[agent.email]
    assert (waiting(), send_soon()) == (0, 0)


def test_somebody_can_unsubscribe_with_one_click(server: MailServer, api: Api) -> None:
    owner, _ = make_member(api.workspace_id)
    note(api.workspace_id)
    send_soon()

    [message] = server.received
    address = f"https://bellhop.test/unsubscribe/{notifications.unsubscribe_token(owner.id)}"
    assert message["List-Unsubscribe"] == f"<{address}>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert address in message.get_content()


def test_an_account_gets_at_most_one_email_an_hour(server: MailServer, api: Api) -> None:
    make_member(api.workspace_id)
    note(api.workspace_id, "one")
    assert send_soon() == 1
    for number in range(5):
        note(api.workspace_id, f"more {number}")

    assert send_soon() == 0
    with clock.moved_by(hours=1, minutes=3):
        assert emails.send_due() == 1

    assert server.received[-1]["Subject"] == "5 notifications from Bellhop"


def test_what_happens_while_an_email_is_sent_is_told_an_hour_later(
    server: MailServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_member(api.workspace_id)
    note(api.workspace_id, "one")
    untold = emails.untold

    def meanwhile(*asked: Any) -> object:
        found = untold(*asked)
        detail = {"import_id": "imp_2", "total": 1, "done": 1, "failed": 0}
        notifications.note(api.workspace_id, "import_ended", "two", detail)
        notifications.announce()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(emails, "untold", meanwhile)
        assert send_soon() == 1

    assert waiting() == 1
    with clock.moved_by(hours=1, minutes=3):
        assert emails.send_due() == 1
    assert (len(server.received), waiting()) == (2, 0)


def test_very_much_is_told_in_part(server: MailServer, api: Api) -> None:
    make_member(api.workspace_id)
    for number in range(60):
        note(api.workspace_id, str(number))

    assert send_soon() == 1

    assert server.received[0]["Subject"] == "More than 50 notifications from Bellhop"
    assert "There is more;" in server.received[0].get_content()
    assert waiting() == 0


def test_who_has_unsubscribed_meanwhile_gets_nothing(server: MailServer, api: Api) -> None:
    owner, _ = make_member(api.workspace_id)
    note(api.workspace_id)
    notifications.announce()
    notifications.want_email(owner.id, wanted=False)

    with clock.moved_by(minutes=2):
        assert emails.send_due() == 0

    assert (server.received, waiting()) == ([], 0)


def test_a_name_of_many_characters_or_lines_is_no_header(server: MailServer, api: Api) -> None:
    rows("UPDATE workspaces SET name = %s", ("x" * 200 + "\nBcc: eve@example.com",))
    emails.arrange_invitation(links.invite(api.workspace_id, "ada@example.com", "agent").link_id)

    assert emails.send_due() == 1

    assert (server.received[0]["Bcc"], server.recipients) == (None, ["ada@example.com"])


def test_what_the_server_refuses_for_good_is_forgotten(server: MailServer, api: Api) -> None:
    make_member(api.workspace_id)
    note(api.workspace_id)
    server.answers["RCPT"] = "550 no such user"

    assert send_soon() == 0

    server.answers.clear()
    assert (waiting(), send_soon()) == (0, 0)


@pytest.mark.parametrize(
    "answers", [{"RCPT": "450 greylisted"}, {"CONTENT": "451 later"}, {"EHLO": None, "HELO": None}]
)
def test_what_the_server_does_not_take_now_is_tried_again(server: MailServer, answers: dict[str, str | None]) -> None:
    make_account()
    emails.arrange_reset("ada@example.com")
    server.answers.update(answers)

    assert emails.send_due() == 0
    assert emails.send_due() == 0
    server.answers.clear()
    with clock.moved_by(seconds=31):
        assert emails.send_due() == 1

    assert (server.recipients, waiting()) == (["ada@example.com"], 0)


def test_one_that_is_postponed_does_not_hold_up_the_others(server: MailServer) -> None:
    make_account()
    make_account("bob@example.com")
    emails.arrange_reset("ada@example.com")
    emails.arrange_reset("bob@example.com")
    server.refused.add("ada@example.com")

    assert emails.send_due() == 1

    assert (server.recipients, waiting()) == (["bob@example.com"], 1)


def test_pauses_between_attempts_grow_to_an_hour(server: MailServer) -> None:
    make_account()
    emails.arrange_reset("ada@example.com")
    server.answers["RCPT"] = "450 greylisted"
    pauses = []
    for _ in range(10):
        rows("UPDATE emails SET due_at = now() - interval '1 minute'")
        emails.send_due()
        pauses.append(round(one("SELECT extract(epoch FROM due_at - now()) FROM emails"), -1))

    assert pauses[:3] == [30, 60, 120]
    assert pauses[-1] == 3600


def test_a_link_that_nobody_waits_for_any_more_is_not_sent(server: MailServer) -> None:
    make_account()
    emails.arrange_reset("ada@example.com")

    with clock.moved_by(days=1, minutes=1):
        assert emails.send_due() == 0

    assert (server.received, waiting()) == ([], 0)


def test_several_schedulers_send_each_email_once(server: MailServer) -> None:
    for number in range(30):
        make_account(f"person-{number}@example.com")
        emails.arrange_reset(f"person-{number}@example.com")

    sent = in_threads([emails.send_due] * 4)

    assert sum(sent) + emails.send_due() == 30
    assert len(set(server.recipients)) == len(server.recipients) == 30


def test_an_email_whose_sender_died_is_sent_by_another(server: MailServer) -> None:
    make_account()
    emails.arrange_reset("ada@example.com")
    emails._claim()

    assert emails.send_due() == 0
    with clock.moved_by(minutes=4):
        assert emails.send_due() == 1


def test_a_scheduler_whose_clock_is_ahead_leaves_what_another_is_sending(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_account("ada@example.com")
    emails.arrange_reset("ada@example.com")
    emails._claim()
    ahead = clock.now() + 2 * emails.CLAIMED
    monkeypatch.setattr(clock, "now", lambda: ahead)

    assert emails.send_due() == 0
    assert server.received == []


def test_without_a_server_nothing_is_sent(empty: None) -> None:
    make_account()
    emails.arrange_reset("ada@example.com")

    assert not emails.can_be_sent()
    assert emails.send_due() == 0
