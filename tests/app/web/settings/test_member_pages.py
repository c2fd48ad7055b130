"""Settings → Members."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.database import rows
from app.domain.people import emails, links, members
from app.errors import NotFound
from app.lib import ids
from app.models.audit_entries import AuditEntry
from tests import pages
from tests.cast import Api, all_of, one
from tests.mail_server import MailServer
from tests.pages import Person
from tests.people import make_member
from tests.talks import make_channel, receive

INVITATION = {"email": "ada@example.com", "role": "agent"}


def roles(workspace_id: str) -> dict[str, str]:
    return {person.email: person.role for person in members.of_workspace(workspace_id)}


def test_everybody_in_a_workspace_sees_its_members(owner: Person, agent: Person, stranger: Person) -> None:
    for person in (owner, agent):
        page = person.page("settings/members")
        assert "owner@shop.example" in page
        assert "agent@shop.example" in page
        assert "owner@others.example" not in page
    assert "Invite somebody" in owner.page("settings/members")
    assert "Invite somebody" not in agent.page("settings/members")
    assert stranger.get("settings/members").status_code == 404


def test_an_owner_invites_somebody_by_email(owner: Person, api: Api, mail_server: MailServer) -> None:
    assert owner.post("settings/members/invite", INVITATION).status_code == 303
    assert "ada@example.com" in owner.page("settings/members")

    emails.send_due()

    found = re.search(r"/links/(\S+)", mail_server.received[0].get_content())
    assert found
    links.use(found[1], "a new password")
    assert roles(api.workspace_id)["ada@example.com"] == "agent"
    [invited, joined] = AuditEntry.in_workspace(api.workspace_id).order_by(AuditEntry.id)
    assert invited.actor_id == one("SELECT id FROM members WHERE role = 'owner'")
    assert joined.action == "members.join"


def test_a_second_click_sends_one_email(owner: Person, mail_server: MailServer) -> None:
    for _ in range(2):
        owner.post("settings/members/invite", INVITATION)

    emails.send_due()

    assert mail_server.recipients == ["ada@example.com"]


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"email": "nobody"}, 422, "This is not an e-mail address"),
        ({"role": "boss"}, 422, "A role is one of"),
        ({"email": "owner@shop.example"}, 409, "is a member of this workspace already"),
    ],
)
def test_an_invitation_that_is_refused_keeps_what_was_typed(
    owner: Person, mail_server: MailServer, fields: dict[str, str], status: int, said: str
) -> None:
    answer = owner.post("settings/members/invite", INVITATION | fields)

    assert answer.status_code == status
    assert said in answer.text
    assert f'value="{(INVITATION | fields)["email"]}"' in answer.text
    assert one("SELECT count(*) FROM emails") == 0


def link_in(page: str) -> str:
    """The token of the one link on the page."""
    found = set(re.findall(r"/links/([\w-]+)", page))
    assert len(found) == 1
    return found.pop()


def test_without_a_mail_server_the_link_is_shown_once(
    owner: Person, api: Api, capfd: pytest.CaptureFixture[str]
) -> None:
    assert "No e-mail is sent" in owner.page("settings/members")

    answer = owner.post("settings/members/invite", INVITATION)

    assert answer.status_code == 200
    assert "Nobody got an e-mail" in answer.text
    token = link_in(answer.text)
    assert f'data-copy="https://bellhop.test/links/{token}"' in answer.text
    assert token not in owner.page("settings/members")
    assert "ada@example.com" in owner.page("settings/members")
    assert one("SELECT count(*) FROM emails") == 0
    assert token not in str(rows("SELECT * FROM audit_entries"))
    assert token not in "".join(capfd.readouterr())
    links.use(token, "a new password")
    assert roles(api.workspace_id)["ada@example.com"] == "agent"


def test_a_lost_link_is_replaced(owner: Person, api: Api) -> None:
    first = link_in(owner.post("settings/members/invite", INVITATION).text)
    link_id = one("SELECT id FROM password_links")

    second = link_in(owner.post(f"settings/members/invitations/{link_id}/renew").text)

    with pytest.raises(NotFound):
        links.find(first)
    assert links.find(second).email == "ada@example.com"
    assert one("SELECT count(*) FROM audit_entries WHERE action = 'members.renew_invitation'") == 1
    links.withdraw(api.workspace_id, link_id, None)
    assert owner.post(f"settings/members/invitations/{link_id}/renew").status_code == 404


def test_only_owners_make_links_and_only_of_their_workspace(
    app: Flask, owner: Person, agent: Person, others: Api, stranger: Person
) -> None:
    admin = pages.member(app, owner.workspace_id, "admin")
    theirs = links.invite(others.workspace_id, "eve@example.com", "agent").link_id
    owner.post("settings/members/invite", INVITATION)
    link_id = one("SELECT id FROM password_links WHERE workspace_id = %s", owner.workspace_id)

    for person in (admin, agent):
        assert person.post("settings/members/invite", INVITATION).status_code == 403
        assert person.post(f"settings/members/invitations/{link_id}/renew").status_code == 403
    assert owner.post(f"settings/members/invitations/{theirs}/renew").status_code == 404
    assert owner.post("settings/members/invitations/lnk_x/renew").status_code == 404
    assert stranger.post(f"settings/members/invitations/{link_id}/renew").status_code == 404


def test_without_e_mail_nobody_joins_with_an_account_that_they_cannot_sign_in_to(
    app: Flask, owner: Person, agent: Person, others: Api
) -> None:
    made = links.invite(others.workspace_id, agent.email, "admin")
    path = urlsplit(made.address).path

    signed_out = app.extensions["pages"].test_client()
    token = re.search(r'name="csrf_token" value="([^"]+)"', signed_out.get(path).text)
    assert token
    answer = signed_out.post(path, data={"csrf_token": token[1]})
    assert "/sign-in?next=" in answer.location
    assert "Sign out" in owner.post(path).text
    assert agent.email not in roles(others.workspace_id)

    assert agent.post(path).status_code == 303
    assert roles(others.workspace_id)[agent.email] == "admin"


def test_an_invitation_is_withdrawn(owner: Person, mail_server: MailServer) -> None:
    owner.post("settings/members/invite", INVITATION)
    link_id = one("SELECT id FROM password_links")

    for _ in range(2):
        assert owner.post(f"settings/members/invitations/{link_id}/withdraw").status_code == 303

    assert "ada@example.com" not in owner.page("settings/members")
    assert emails.send_due() == 0


def test_an_owner_changes_roles_and_removes_members(owner: Person, agent: Person, api: Api) -> None:
    member_id = one("SELECT id FROM members WHERE role = 'agent'")

    owner.post(f"settings/members/{member_id}/role", {"role": "admin"})
    assert roles(api.workspace_id)["agent@shop.example"] == "admin"
    owner.post(f"settings/members/{member_id}/remove")

    assert roles(api.workspace_id) == {"owner@shop.example": "owner"}
    assert agent.get("settings/members").status_code == 404


def test_the_last_owner_stays(owner: Person, api: Api) -> None:
    member_id = one("SELECT id FROM members")

    owner.post(f"settings/members/{member_id}/remove")
    assert "A workspace needs an owner" in owner.page("settings/members")
    owner.post(f"settings/members/{member_id}/role", {"role": "agent"})

    assert "A workspace needs an owner" in owner.page("settings/members")
    assert roles(api.workspace_id) == {"owner@shop.example": "owner"}


def test_who_removes_themselves_leaves(owner: Person, api: Api) -> None:
    make_member(api.workspace_id, "second@shop.example")
    member_id = one(
        "SELECT members.id FROM members JOIN accounts ON accounts.id = account_id WHERE email LIKE 'owner%%'"
    )

    assert owner.post(f"settings/members/{member_id}/remove").location == "/workspaces"

    assert owner.get("settings/members").status_code == 404


@pytest.mark.parametrize("action", ["role", "remove"])
def test_only_owners_manage_members(
    owner: Person, agent: Person, stranger: Person, support: Person, api: Api, action: str
) -> None:
    member_id = one("SELECT id FROM members WHERE role = 'owner' AND workspace_id = %s", api.workspace_id)
    path = f"settings/members/{member_id}/{action}"

    assert agent.post(path, {"role": "agent"}).status_code == 403
    assert stranger.post(path, {"role": "agent"}).status_code == 404
    assert support.post(path, {"role": "agent"}).status_code == 403
    support.visit()
    assert support.post(path, {"role": "agent"}).status_code == 403
    assert support.post("settings/members/invite", INVITATION).status_code == 403

    assert roles(api.workspace_id)["owner@shop.example"] == "owner"


def test_members_of_another_workspace_cannot_be_named(owner: Person, stranger: Person) -> None:
    theirs = one("SELECT id FROM members WHERE workspace_id <> %s", owner.workspace_id)

    for action in ("role", "remove"):
        assert owner.post(f"settings/members/{theirs}/{action}", {"role": "agent"}).status_code == 404


def member_id_of(role: str) -> str:
    return str(one("SELECT id FROM members WHERE role = %s", role))


def work(person: Person, member_id: str, **changes: str) -> TestResponse:
    given = {"was": "available", "availability": "available", "capacity": ""} | changes
    return person.post(f"settings/members/{member_id}/work", given)


def test_the_page_shows_how_much_each_has_to_do(owner: Person, agent: Person, api: Api) -> None:
    agent_id = member_id_of("agent")
    rows("UPDATE members SET availability = 'away', capacity = 1000 WHERE id = %s", (agent_id,))
    talk = receive(api.workspace_id, api.contact(email="ada@example.com")["id"], make_channel(api.workspace_id))
    rows("UPDATE conversations SET assignee_id = %s WHERE id = %s", (agent_id, talk.conversation_id))

    text = re.sub(r"\s+", " ", agent.page("settings/members"))

    assert '<td class="number">1</td> <td> <span class="standing away">Away</span>' in text
    assert "up to 1,000" in text
    assert '<td class="number">0</td> <td> <span class="standing available">Available</span>' in text
    assert "no limit" in text


def test_availability_and_limit_of_a_member_are_changed(app: Flask, owner: Person, api: Api) -> None:
    member_id = member_id_of("owner")
    admin = pages.member(app, api.workspace_id, "admin")

    assert work(admin, member_id, capacity="20").status_code == 303
    assert "The member was changed." in admin.page("settings/members")
    assert all_of("SELECT (availability, capacity)::text FROM members WHERE role = 'owner'") == ["(available,20)"]
    work(admin, member_id, availability="away", capacity=" 0 ")
    assert all_of("SELECT (availability, capacity)::text FROM members WHERE role = 'owner'") == ["(away,0)"]
    work(admin, member_id, availability="away", was="away")

    assert all_of("SELECT (availability, capacity)::text FROM members WHERE role = 'owner'") == ["(away,)"]
    details = all_of("SELECT detail FROM audit_entries WHERE action = 'members.update' ORDER BY id")
    # To send away again whoever is away would give back what they kept.
    assert details == [{"capacity": 20}, {"capacity": 0, "availability": "away"}, {"capacity": None}]


@pytest.mark.parametrize("changes", [{"capacity": value} for value in ("many", "-1", "10001", "²", "9" * 400)])
def test_a_limit_that_is_none_is_refused_at_its_row(owner: Person, changes: dict[str, str]) -> None:
    answer = work(owner, member_id_of("owner"), **changes)

    assert answer.status_code == 422
    assert "Give a whole number up to 10,000" in answer.text
    assert f'value="{changes["capacity"]}"' in answer.text


def test_only_owners_and_admins_change_how_much_others_get(owner: Person, agent: Person, stranger: Person) -> None:
    member_id = member_id_of("agent")
    theirs = one("SELECT id FROM members WHERE workspace_id <> %s", owner.workspace_id)

    assert work(agent, member_id, capacity="1").status_code == 403
    assert work(stranger, member_id, capacity="1").status_code == 404
    for unknown in (theirs, ids.new("mem"), "ada"):
        assert work(owner, unknown, capacity="1").status_code == 404
    assert work(owner, member_id, availability="asleep").status_code == 422
    assert one("SELECT count(*) FROM members WHERE capacity IS NOT NULL") == 0


def test_support_changes_it_during_a_visit_and_the_audit_log_has_it_once(support: Person, owner: Person) -> None:
    support.visit()

    assert work(support, member_id_of("owner"), capacity="5").status_code == 303

    assert one("SELECT count(*) FROM audit_entries WHERE action = 'members.update'") == 1
