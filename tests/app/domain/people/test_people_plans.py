"""Every statement about people finds its rows by an index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app import database
from app.domain.billing import usage_warnings
from app.domain.people import accounts, emails, links, members, notifications, sessions, sign_ins, support_accounts
from app.domain.retention import delete_old
from app.domain.work import audit
from app.errors import SignInRefused
from app.lib import clock
from app.models.audit_entries import AuditEntry
from app.models.base import page_before
from tests.cast import Api
from tests.mail_server import MailServer
from tests.people import ADDRESS, PASSWORD, make_account, make_member, signed_in

Statement = tuple[str, Any]


@pytest.fixture
def statements(empty: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Statement]]:
    """The statements that the test runs."""
    found: list[Statement] = []
    run = database.database.execute_sql

    def noting(sql: str, params: Any = None) -> Any:
        found.append((sql, params))
        return run(sql, params)

    with monkeypatch.context() as patch:
        patch.setattr(database.database, "execute_sql", noting)
        yield found


def scans(statements: list[Statement]) -> list[str]:
    """Those that read a whole table. A sequential scan is planned only where no index can help."""
    planned = ("SELECT", "UPDATE", "DELETE", "WITH", "EXECUTE")
    explained = [each for each in statements if each[0].lstrip().split()[0] in planned]
    return [
        sql
        for sql, parameters in list(explained)
        if "Seq Scan" in str(database.rows(f"EXPLAIN (FORMAT JSON) {sql}", parameters))
    ]


def test_signing_in_and_looking_around(api: Api, statements: list[Statement]) -> None:
    account, member = make_member(api.workspace_id)
    with pytest.raises(SignInRefused):
        sign_ins.sign_in("ada@example.com", "wrong password", ADDRESS, "Firefox")
    token = sign_ins.sign_in("ada@example.com", PASSWORD, ADDRESS, "Firefox")
    with clock.moved_by(minutes=2):
        sessions.find(token)
    sessions.of(account.id)
    sessions.end_all(account.id, except_="ses_1")
    sessions.end("ses_1")
    members.of_workspace(api.workspace_id)
    notifications.bell(member.id)
    notifications.mark_read(member.id, "ntf_1")
    audit.names_of(api.workspace_id, [member.id])

    assert scans(statements) == []
    assert len(statements) > 15


def test_changing_who_belongs_where(api: Api, statements: list[Statement]) -> None:
    make_member(api.workspace_id, "owner@example.com")
    made = links.invite(api.workspace_id, "ada@example.com", "agent")
    links.invitations(api.workspace_id)
    renewed = links.renew(made.link_id)
    assert renewed is not None
    links.use(renewed.address.rpartition("/")[2], "a new password")
    [_, ada] = members.of_workspace(api.workspace_id)
    members.change_role(api.workspace_id, ada.member_id, "admin", None)
    members.remove(api.workspace_id, ada.member_id, None)
    links.reset(made.account)
    accounts.set_password(made.account.id, "another password")
    visit = support_accounts.begin_visit(
        make_account("grace@example.com", is_support=True).id, api.workspace_id, "Reason", "T-1"
    )
    sessions.visit_in(visit.account_id, api.workspace_id)
    support_accounts.end_visit(visit.id)

    assert scans(statements) == []
    assert len(statements) > 30


def test_support_accounts_and_their_log(api: Api, statements: list[Statement]) -> None:
    account = support_accounts.create("grace@example.com", PASSWORD)
    support_accounts.begin_visit(account.id, api.workspace_id, "Reason", "T-1")
    support_accounts.of_installation()
    support_accounts.reset("grace@example.com")
    support_accounts.disable("grace@example.com")
    support_accounts.enable("grace@example.com")
    support_accounts.remove("grace@example.com")
    for chosen in ({}, {"person": "grace@example.com"}, {"actor_type": "support"}, {"workspace": api.workspace_id}):
        entries = list(page_before(audit.everywhere(chosen), AuditEntry, [None], 50))
        list(page_before(audit.everywhere(chosen), AuditEntry, [entries[0].id], 50))
        audit.names_everywhere(entries)

    assert scans(statements) == []
    assert len(statements) > 40


def test_notifying_and_forgetting(api: Api, mail_server: MailServer, statements: list[Statement]) -> None:
    account, _ = make_member(api.workspace_id)
    signed_in(account)
    notifications.note(api.workspace_id, "import_ended", "1", {"import_id": "x", "total": 1, "done": 1, "failed": 0})
    notifications.announce()
    emails.arrange_reset("ada@example.com")
    with clock.moved_by(minutes=2):
        assert emails.send_due() == 2
    usage_warnings.warn()
    for name in ("old_sessions", "old_sign_in_failures", "old_password_links", "old_notifications"):
        delete_old(name)

    assert scans(statements) == []
    assert len(statements) > 15
