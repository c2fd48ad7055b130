from __future__ import annotations

import pytest

from app.domain.people import accounts, emails, links, members, sessions, sign_ins, support_accounts
from app.errors import Conflict, Invalid, NotFound, SignInRefused
from app.lib import ids
from app.models.audit_entries import AuditEntry
from tests.cast import Api, in_threads, one
from tests.people import ADDRESS, PASSWORD, make_account, make_member, signed, signed_in

GRACE = "grace@support.example"


def token_of(address: str) -> str:
    return address.rpartition("/")[2]


def logged() -> list[tuple[str, str | None, str]]:
    entries = AuditEntry.select().where(AuditEntry.target_type == "account").order_by(AuditEntry.id)
    return [(entry.action, entry.workspace_id, entry.detail["email"]) for entry in entries]


def test_a_support_account_belongs_to_no_workspace_and_can_sign_in(api: Api, others: Api) -> None:
    account = support_accounts.create("Grace@support.example", PASSWORD)

    found = sessions.find(sign_ins.sign_in(GRACE, PASSWORD, ADDRESS, "Firefox"))
    assert found is not None
    assert (found.account_id, found.is_support, found.memberships) == (account.id, True, ())
    for workspace_id in (api.workspace_id, others.workspace_id):
        support_accounts.begin_visit(account.id, workspace_id, "Reason", "T-1")
        assert sessions.visit_in(account.id, workspace_id) is not None
    assert logged() == [("support.create", None, account.email)]


@pytest.mark.parametrize(
    ("email", "password", "kind"),
    [
        ("grace", PASSWORD, Invalid),
        ("new@support.example", "short", Invalid),
        (GRACE, "another password", Conflict),
        ("ada@example.com", "another password", Conflict),
    ],
)
def test_an_account_that_is_refused_leaves_everything_as_it_was(
    api: Api, email: str, password: str, kind: type[Exception]
) -> None:
    make_account(GRACE, is_support=True)
    make_member(api.workspace_id)

    with pytest.raises(kind):
        support_accounts.create(email, password)

    assert one("SELECT count(*) FROM accounts") == 2
    assert one("SELECT string_agg(email, ' ') FROM accounts WHERE is_support") == GRACE
    assert accounts.verify("ada@example.com", PASSWORD) is not None
    assert logged() == []


def test_what_somebody_else_may_know_of_an_address_does_not_open_its_support_account(api: Api) -> None:
    account = make_account(GRACE)
    session, reset = signed_in(account), links.reset(account)
    invitation = links.invite(api.workspace_id, GRACE, "owner")

    support_accounts.create(GRACE, "another password")

    assert sessions.find(session) is None
    assert accounts.verify(GRACE, PASSWORD) is None
    with pytest.raises(NotFound):
        links.use(token_of(reset.address), PASSWORD)
    with pytest.raises(Conflict):
        links.use(token_of(invitation.address), PASSWORD)
    assert accounts.verify(GRACE, "another password") is not None


def test_a_workspace_neither_gets_support_staff_as_members_nor_learns_who_they_are(api: Api) -> None:
    support_accounts.create(GRACE, PASSWORD)
    make_account("known@example.com")

    made = links.invite(api.workspace_id, GRACE, "agent")
    ordinary = links.invite(api.workspace_id, "known@example.com", "agent")

    seen = [links.find(token_of(each.address)) for each in (made, ordinary)]
    assert [(each.sets_password, each.purpose, each.role) for each in seen] == [(False, "invitation", "agent")] * 2
    assert {each.email for each in links.invitations(api.workspace_id)} == {GRACE, "known@example.com"}
    with pytest.raises(Conflict, match="belong to no workspace"):
        links.use(token_of(made.address), "")
    assert members.of_workspace(api.workspace_id) == []


def test_an_invitation_never_sets_the_password_of_support_staff(api: Api) -> None:
    make_account(GRACE, is_support=True, has_password=False)

    made = links.invite(api.workspace_id, GRACE, "owner")

    assert not links.find(token_of(made.address)).sets_password
    with pytest.raises(Conflict):
        links.use(token_of(made.address), PASSWORD)
    assert one("SELECT count(*) FROM accounts WHERE password_hash IS NOT NULL") == 0


def test_an_address_becomes_a_member_or_support_at_one_moment_but_not_both(api: Api) -> None:
    make_account(GRACE)
    token = token_of(links.invite(api.workspace_id, GRACE, "owner").address)

    results = in_threads([lambda: links.use(token, ""), lambda: support_accounts.create(GRACE, PASSWORD)])

    assert [type(each) for each in results].count(Conflict) == 1
    assert one("SELECT count(*) FROM members") + one("SELECT count(*) FROM accounts WHERE is_support") == 1


def test_a_membership_of_support_staff_gives_no_rights(api: Api) -> None:
    member, account = members.create(api.workspace_id, GRACE, PASSWORD, "owner", is_support=True)

    assert signed(account).memberships == ()
    [person] = members.of_workspace(api.workspace_id)
    assert (person.member_id, person.availability) == (member.id, "away")
    [listed] = support_accounts.of_installation()
    assert listed.member_of == [api.workspace_id]


def test_a_disabled_account_is_out_at_once(api: Api) -> None:
    account = support_accounts.create(GRACE, PASSWORD)
    session, reset = signed_in(account), support_accounts.reset(GRACE)
    visit = support_accounts.begin_visit(account.id, api.workspace_id, "Reason", "T-1")

    support_accounts.disable(GRACE)
    support_accounts.disable(GRACE)

    assert sessions.find(session) is None
    assert sessions.visit_in(account.id, api.workspace_id) is None
    with pytest.raises(SignInRefused):
        sign_ins.sign_in(GRACE, PASSWORD, ADDRESS, "Firefox")
    with pytest.raises(NotFound):
        links.use(token_of(reset), PASSWORD)
    with pytest.raises(NotFound):
        support_accounts.begin_visit(account.id, api.workspace_id, "Reason", "T-1")
    for refused in (lambda: support_accounts.reset(GRACE), lambda: support_accounts.remove(GRACE)):
        with pytest.raises(Conflict):
            refused()
    assert [action for action, *_ in logged()] == ["support.create", "support.reset", "support.disable"]
    ended = AuditEntry.get(AuditEntry.action == "visits.end")
    assert (ended.workspace_id, ended.actor_id, ended.account_id) == (api.workspace_id, visit.id, account.id)


def test_a_disabled_account_gets_no_link_by_e_mail_and_no_session_that_was_on_its_way(api: Api) -> None:
    account = support_accounts.create(GRACE, PASSWORD)
    support_accounts.disable(GRACE)
    session = signed_in(account)  # by a request that had checked the password before
    accounts.set_password(account.id, PASSWORD)  # by one that had begun to change it
    late = signed_in(account)

    assert sessions.find(session) is None
    assert sessions.find(late) is None
    with pytest.raises(SignInRefused):
        sign_ins.sign_in(GRACE, PASSWORD, ADDRESS, "Firefox")
    emails.arrange_reset(GRACE)
    assert emails._reset(emails.Email.get()) is None

    support_accounts.enable(GRACE)

    assert sessions.find(late) is None
    assert accounts.verify(GRACE, PASSWORD) is None


def test_an_account_is_enabled_with_a_new_password(api: Api) -> None:
    support_accounts.create(GRACE, PASSWORD)
    support_accounts.disable(GRACE)

    links.use(token_of(support_accounts.enable(GRACE)), "another password")

    assert accounts.verify(GRACE, "another password") is not None
    [listed] = support_accounts.of_installation()
    assert (listed.email, listed.disabled_at) == (GRACE, None)
    with pytest.raises(Conflict):
        support_accounts.enable(GRACE)


def test_an_account_that_is_removed_is_a_member_again(api: Api) -> None:
    _, account = members.create(api.workspace_id, GRACE, PASSWORD, "owner", is_support=True)
    session = signed_in(account)
    support_accounts.begin_visit(account.id, api.workspace_id, "Reason", "T-1")

    support_accounts.remove(GRACE)

    assert sessions.find(session) is None
    assert sessions.visit_in(account.id, api.workspace_id) is None
    found = signed(account)
    assert (found.is_support, [each.role for each in found.memberships]) == (False, ["owner"])
    assert support_accounts.of_installation() == []


def test_only_support_accounts_are_changed(api: Api) -> None:
    account, _ = make_member(api.workspace_id)
    session = signed_in(account)

    for verb in (support_accounts.reset, support_accounts.disable, support_accounts.enable, support_accounts.remove):
        for email in ("ada@example.com", "nobody@example.com", "", f"{ids.new('acc')}\0"):
            with pytest.raises(NotFound):
                verb(email)

    assert sessions.find(session) is not None
    assert logged() == []
