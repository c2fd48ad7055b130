"""Settings → Members."""

from __future__ import annotations

import re

import pytest

from app.domain.people import emails, links, members
from app.models.audit_entries import AuditEntry
from tests.cast import Api, one
from tests.mail_server import MailServer
from tests.pages import Person
from tests.people import make_member

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


def test_without_a_mail_server_the_page_shows_the_command(owner: Person, api: Api) -> None:
    assert f"python -m app member invite {api.workspace_id}" in owner.page("settings/members")

    assert owner.post("settings/members/invite", INVITATION).status_code == 409

    assert one("SELECT count(*) FROM password_links") == 0


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
