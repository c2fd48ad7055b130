from __future__ import annotations

from types import NoneType

import pytest

from app.domain.people import accounts, links, members, sessions
from app.domain.people.links import Made, Open
from app.domain.retention import delete_old
from app.errors import Conflict, Invalid, NotFound
from app.lib import clock
from app.models.audit_entries import AuditEntry
from tests.cast import Api, all_of, everything_stored, in_threads, one
from tests.people import PASSWORD, make_account, make_member, signed_in

NEW = "another password"


def token_of(made: Made) -> str:
    assert made.address.startswith("https://bellhop.test/links/")
    return made.address.rpartition("/")[2]


def test_an_invitation_makes_a_member_with_a_password(api: Api) -> None:
    token = token_of(links.invite(api.workspace_id, "ada@example.com", "admin"))
    assert members.of_workspace(api.workspace_id) == []
    found = links.find(token)
    assert (found.email, found.purpose, found.workspace_id, found.role) == (
        "ada@example.com",
        "invitation",
        api.workspace_id,
        "admin",
    )
    assert found.sets_password

    links.use(token, NEW)

    [person] = members.of_workspace(api.workspace_id)
    assert (person.email, person.role, person.has_password) == ("ada@example.com", "admin", True)
    assert accounts.verify("ada@example.com", NEW) is not None


def test_a_link_is_used_once(api: Api) -> None:
    for made in (links.invite(api.workspace_id, "ada@example.com", "agent"), links.reset(make_account("b@x.example"))):
        links.use(token_of(made), NEW)

        for again in (lambda made=made: links.use(token_of(made), "third password"), lambda: links.find("nothing")):
            with pytest.raises(NotFound):
                again()
        assert accounts.verify(made.account.email, NEW) is not None


def test_a_link_is_used_once_even_at_one_moment(empty: None) -> None:
    account = make_account()
    token = token_of(links.reset(account))

    results = in_threads([lambda number=number: links.use(token, f"password number {number}") for number in range(4)])

    assert [type(result) for result in results].count(NotFound) == 3


def test_an_invitation_does_not_change_a_password_that_is_set_while_it_is_used(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = links.invite(api.workspace_id, "ada@example.com", "agent")
    hash_password = accounts.hash_password

    def meanwhile(password: str) -> str:
        accounts.store_password(made.account.id, hash_password("the password of the owner"))
        return hash_password(password)

    monkeypatch.setattr(accounts, "hash_password", meanwhile)
    link = links.use(token_of(made), NEW)

    assert not link.sets_password
    assert accounts.verify("ada@example.com", NEW) is None
    assert [person.email for person in members.of_workspace(api.workspace_id)] == ["ada@example.com"]


def test_several_links_of_one_person_used_at_one_moment_do_not_block_each_other(api: Api, others: Api) -> None:
    account = make_account(has_password=False)
    made = [links.invite(each.workspace_id, account.email, "agent") for each in (api, others)]
    made += [links.reset(account), links.reset(account)]

    results = in_threads(
        [
            *(lambda each=each: links.use(token_of(each), NEW) for each in made),
            lambda: links.invite(api.workspace_id, account.email, "agent"),
            lambda: accounts.set_password(account.id, NEW),
        ]
    )

    assert {type(result) for result in results} <= {Open, Made, NotFound, Conflict, NoneType}
    assert accounts.verify(account.email, NEW) is not None


def test_looking_at_a_link_does_not_use_it(empty: None) -> None:
    token = token_of(links.reset(make_account()))

    assert links.find(token) == links.find(token)


def test_a_reset_sets_the_password_and_ends_all_sessions(empty: None) -> None:
    account = make_account()
    session, first, second = signed_in(account), links.reset(account), links.reset(account)

    links.use(token_of(first), NEW)

    assert accounts.verify(account.email, NEW) is not None
    assert accounts.verify(account.email, PASSWORD) is None
    assert sessions.find(session) is None
    with pytest.raises(NotFound):
        links.find(token_of(second))


def test_links_expire(api: Api) -> None:
    reset = token_of(links.reset(make_account()))
    invitation = token_of(links.invite(api.workspace_id, "bob@example.com", "agent"))

    with clock.moved_by(minutes=59):
        links.find(reset)
    with clock.moved_by(minutes=61), pytest.raises(NotFound):
        links.use(reset, NEW)
    with clock.moved_by(days=6, hours=23):
        links.find(invitation)
    with clock.moved_by(days=7, minutes=1), pytest.raises(NotFound):
        links.use(invitation, NEW)
    with clock.moved_by(days=7, minutes=1):
        assert delete_old("old_password_links") == 2


def test_a_password_that_is_refused_leaves_the_link(api: Api) -> None:
    token = token_of(links.invite(api.workspace_id, "ada@example.com", "agent"))

    with pytest.raises(Invalid):
        links.use(token, "short")

    assert members.of_workspace(api.workspace_id) == []
    links.use(token, NEW)


def test_an_invitation_never_changes_a_password_that_is_set(api: Api) -> None:
    account = make_account()
    session = signed_in(account)
    token = token_of(links.invite(api.workspace_id, "ADA@example.com", "agent"))
    assert not links.find(token).sets_password

    links.use(token, NEW)

    assert accounts.verify(account.email, PASSWORD) is not None
    found = sessions.find(session)
    assert found is not None
    assert [each.role for each in found.memberships] == ["agent"]


def test_a_member_is_not_invited_again(api: Api) -> None:
    make_member(api.workspace_id)

    with pytest.raises(Conflict):
        links.invite(api.workspace_id, "ada@example.com", "agent")

    assert one("SELECT count(*) FROM password_links") == 0


def test_a_second_invitation_replaces_the_first(api: Api) -> None:
    first, second = (links.invite(api.workspace_id, "ada@example.com", role) for role in ("owner", "agent"))

    with pytest.raises(NotFound):
        links.use(token_of(first), NEW)
    links.use(token_of(second), NEW)

    assert [person.role for person in members.of_workspace(api.workspace_id)] == ["agent"]


def test_an_invitation_does_not_change_the_role_of_who_has_joined(api: Api) -> None:
    made = links.invite(api.workspace_id, "ada@example.com", "owner")
    members.add(api.workspace_id, made.account.id, "agent")

    links.use(token_of(made), NEW)

    assert [person.role for person in members.of_workspace(api.workspace_id)] == ["agent"]


def test_who_was_removed_does_not_come_back_by_an_invitation_from_before(api: Api, others: Api) -> None:
    make_member(api.workspace_id, "owner@example.com")
    made = [links.invite(each.workspace_id, "ada@example.com", "owner") for each in (api, others)]
    member = members.add(api.workspace_id, made[0].account.id, "agent")

    members.remove(api.workspace_id, member.id, None)

    with pytest.raises(NotFound):
        links.use(token_of(made[0]), NEW)
    links.use(token_of(made[1]), NEW)


def test_an_invitation_can_be_withdrawn_by_its_workspace_only(api: Api, others: Api) -> None:
    made = links.invite(api.workspace_id, "ada@example.com", "agent")
    assert [each.link_id for each in links.invitations(api.workspace_id)] == [made.link_id]
    assert links.invitations(others.workspace_id) == []

    with pytest.raises(NotFound):
        links.withdraw(others.workspace_id, made.link_id, None)
    links.withdraw(api.workspace_id, made.link_id, None)

    assert links.invitations(api.workspace_id) == []
    with pytest.raises(NotFound):
        links.use(token_of(made), NEW)


def test_a_workspace_makes_so_many_invitations_in_a_day(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MOST_INVITATIONS", 2)
    for number in range(2):
        made = links.invite(api.workspace_id, f"person-{number}@example.com", "agent")
        links.withdraw(api.workspace_id, made.link_id, None)

    with pytest.raises(Conflict):
        links.invite(api.workspace_id, "ada@example.com", "agent")
    with clock.moved_by(days=1, minutes=1):
        links.invite(api.workspace_id, "ada@example.com", "agent")


def test_nobody_is_invited_over_and_over(api: Api) -> None:
    for _ in range(5):
        links.invite(api.workspace_id, "ada@example.com", "agent")

    with pytest.raises(Conflict):
        links.invite(api.workspace_id, "ada@example.com", "agent")
    links.invite(api.workspace_id, "bob@example.com", "agent")


def test_an_invitation_is_renewed_while_it_can_be_used(api: Api) -> None:
    made = links.invite(api.workspace_id, "ada@example.com", "agent")

    renewed = links.renew(made.link_id)

    assert renewed is not None
    assert renewed.workspace_id == api.workspace_id
    with pytest.raises(NotFound):
        links.find(token_of(made))
    links.use(token_of(renewed), NEW)
    assert links.renew(made.link_id) is None
    assert links.renew(links.reset(made.account).link_id) is None


def test_an_account_has_a_bound_of_links_and_the_newest_count(empty: None) -> None:
    account = make_account()

    made = [links.reset(account) for _ in range(7)]

    for each in made[:2]:
        with pytest.raises(NotFound):
            links.find(token_of(each))
    for each in made[2:]:
        links.find(token_of(each))


def test_the_token_of_a_link_is_not_stored(api: Api) -> None:
    made = [links.invite(api.workspace_id, "ada@example.com", "agent"), links.reset(make_account("b@x.example"))]

    assert not [each for each in made if token_of(each) in everything_stored()]


@pytest.mark.parametrize("token", ["", "x", "\0", "ü" * 1000])
def test_what_is_no_link_is_not_found(empty: None, token: str) -> None:
    links.reset(make_account())

    with pytest.raises(NotFound):
        links.find(token)


def test_who_invites_and_who_joins_is_logged_without_addresses(api: Api) -> None:
    _, owner = make_member(api.workspace_id, "owner@example.com")
    made = links.invite(api.workspace_id, "ada@example.com", "agent", owner.id)
    links.use(token_of(made), NEW)

    entries = list(AuditEntry.in_workspace(api.workspace_id).order_by(AuditEntry.id))
    joined = all_of("SELECT id FROM members WHERE id <> %s", owner.id)
    assert [(each.action, each.actor_id, each.target_id) for each in entries] == [
        ("members.invite", owner.id, made.link_id),
        ("members.join", joined[0], joined[0]),
    ]
    assert [each.detail for each in entries] == [{"role": "agent"}, {"role": "agent"}]
