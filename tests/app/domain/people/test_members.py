from __future__ import annotations

import pytest

from app.domain.people import accounts, members, sessions
from app.errors import Conflict, Invalid, NotFound
from app.lib import ids
from app.models.audit_entries import AuditEntry
from tests.cast import Api, in_threads, one
from tests.people import PASSWORD, make_account, make_member, signed_in


def roles(workspace_id: str) -> dict[str, str]:
    return {person.email: person.role for person in members.of_workspace(workspace_id)}


def test_a_member_is_made_with_a_password(api: Api) -> None:
    made, account = members.create(api.workspace_id, "ada@example.com", PASSWORD, "owner")

    assert accounts.verify("ada@example.com", PASSWORD) is not None
    assert (made.account_id, account.is_support) == (account.id, False)
    assert roles(api.workspace_id) == {"ada@example.com": "owner"}


def test_somebody_with_an_account_gets_the_new_password_and_their_sessions_end(api: Api, others: Api) -> None:
    account, _ = make_member(others.workspace_id)
    session = signed_in(account)

    members.create(api.workspace_id, "Ada@example.com", "another password", "agent")

    assert one("SELECT count(*) FROM accounts") == 1
    assert accounts.verify("ada@example.com", "another password") is not None
    assert sessions.find(session) is None


@pytest.mark.parametrize(
    ("email", "password", "role", "kind"),
    [
        ("ada", PASSWORD, "owner", Invalid),
        ("new@example.com", "short", "owner", Invalid),
        ("new@example.com", PASSWORD, "boss", Invalid),
        ("ada@example.com", "another password", "agent", Conflict),
    ],
)
def test_a_member_that_is_refused_leaves_nothing_behind(
    api: Api, email: str, password: str, role: str, kind: type[Exception]
) -> None:
    make_member(api.workspace_id)

    with pytest.raises(kind):
        members.create(api.workspace_id, email, password, role, is_support=True)

    assert roles(api.workspace_id) == {"ada@example.com": "owner"}
    assert one("SELECT count(*) FROM accounts WHERE is_support") == 0
    assert one("SELECT count(*) FROM accounts") == 1
    assert accounts.verify("ada@example.com", PASSWORD) is not None


def test_staff_stay_staff_in_a_further_workspace(api: Api, others: Api) -> None:
    members.create(api.workspace_id, "grace@example.com", PASSWORD, "agent", is_support=True)
    _, account = members.create(others.workspace_id, "grace@example.com", PASSWORD, "agent")

    assert account.is_support


def test_the_members_of_a_workspace_are_listed_oldest_first(api: Api, others: Api) -> None:
    make_member(others.workspace_id, "other@example.com")
    make_member(api.workspace_id)
    members.add(api.workspace_id, make_account("new@example.com", has_password=False).id, "agent")

    listed = members.of_workspace(api.workspace_id)

    assert [(person.email, person.role, person.has_password) for person in listed] == [
        ("ada@example.com", "owner", True),
        ("new@example.com", "agent", False),
    ]


def test_a_role_is_changed_and_logged(api: Api) -> None:
    _, owner = make_member(api.workspace_id)
    _, member = make_member(api.workspace_id, "bob@example.com", "agent")

    members.change_role(api.workspace_id, member.id, "admin", owner.id)
    members.change_role(api.workspace_id, member.id, "admin", owner.id)

    assert roles(api.workspace_id)["bob@example.com"] == "admin"
    [entry] = AuditEntry.in_workspace(api.workspace_id)
    assert (entry.action, entry.actor_id, entry.target_id) == ("members.change_role", owner.id, member.id)
    assert entry.detail == {"from": "agent", "to": "admin"}


def test_a_member_is_removed_and_logged(api: Api) -> None:
    _, owner = make_member(api.workspace_id)
    _, member = make_member(api.workspace_id, "bob@example.com", "agent")

    members.remove(api.workspace_id, member.id, owner.id)

    assert roles(api.workspace_id) == {"ada@example.com": "owner"}
    [entry] = AuditEntry.in_workspace(api.workspace_id)
    assert (entry.action, entry.detail) == ("members.remove", {"email": "bob@example.com", "role": "agent"})


def test_the_last_owner_stays_owner(api: Api) -> None:
    _, owner = make_member(api.workspace_id)
    make_member(api.workspace_id, "bob@example.com", "admin")

    with pytest.raises(Conflict):
        members.change_role(api.workspace_id, owner.id, "admin", owner.id)
    with pytest.raises(Conflict):
        members.remove(api.workspace_id, owner.id, owner.id)

    members.change_role(api.workspace_id, owner.id, "owner", owner.id)
    assert roles(api.workspace_id)["ada@example.com"] == "owner"


def test_the_last_two_owners_do_not_go_at_one_moment(api: Api) -> None:
    found = [make_member(api.workspace_id, f"owner-{number}@example.com")[1].id for number in range(2)]

    results = in_threads(
        [
            lambda: members.remove(api.workspace_id, found[0], None),
            lambda: members.change_role(api.workspace_id, found[1], "agent", None),
        ]
    )

    assert sorted(str(type(result).__name__) for result in results) == ["Conflict", "NoneType"]
    assert list(roles(api.workspace_id).values()).count("owner") == 1


def test_members_of_another_workspace_are_out_of_reach(api: Api, others: Api) -> None:
    make_member(others.workspace_id)
    _, theirs = make_member(others.workspace_id, "bob@example.com", "agent")
    _, owner = make_member(api.workspace_id, "owner@example.com")

    for member_id in (theirs.id, ids.new("mem"), "x", ""):
        with pytest.raises(NotFound):
            members.remove(api.workspace_id, member_id, owner.id)
        with pytest.raises(NotFound):
            members.change_role(api.workspace_id, member_id, "admin", owner.id)

    assert roles(others.workspace_id)["bob@example.com"] == "agent"


def test_a_role_that_there_is_not_is_refused(api: Api) -> None:
    _, member = make_member(api.workspace_id)

    with pytest.raises(Invalid):
        members.change_role(api.workspace_id, member.id, "boss", None)


def test_an_account_is_a_member_once_even_at_one_moment(api: Api) -> None:
    account = make_account()

    found = in_threads([lambda: members.add(api.workspace_id, account.id, "agent").id] * 4)

    assert len(set(found)) == one("SELECT count(*) FROM members") == 1


def test_a_workspace_and_an_account_have_a_bound(api: Api, others: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    account, _ = make_member(api.workspace_id)
    monkeypatch.setattr(members, "MOST_MEMBERS", 1)
    with pytest.raises(Conflict):
        members.add(api.workspace_id, make_account("bob@example.com").id, "agent")
    monkeypatch.setattr(members, "MOST_MEMBERSHIPS", 1)
    with pytest.raises(Conflict):
        members.add(others.workspace_id, account.id, "agent")
