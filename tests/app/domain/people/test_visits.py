from __future__ import annotations

import pytest

from app.database import rows
from app.domain.people import sessions, support_accounts
from app.domain.work import audit
from app.errors import Invalid, NotFound
from app.lib import clock, ids
from app.models.accounts import Account
from app.models.audit_entries import AuditEntry
from tests.cast import Api, accept, one
from tests.people import make_account, make_member


@pytest.fixture
def staff(api: Api) -> Account:
    return make_account("grace@support.example", is_support=True)


def entries(workspace_id: str) -> list[AuditEntry]:
    return list(AuditEntry.in_workspace(workspace_id).order_by(AuditEntry.id))


def test_a_visit_lasts_an_hour_in_one_workspace(api: Api, others: Api, staff: Account) -> None:
    visit = support_accounts.begin_visit(staff.id, api.workspace_id, "They asked us to resend.", "T-1042")

    found = sessions.visit_in(staff.id, api.workspace_id)
    assert found is not None
    assert (found.id, found.reason, found.ticket) == (visit.id, "They asked us to resend.", "T-1042")
    assert sessions.visit_in(staff.id, others.workspace_id) is None
    assert sessions.visit_in(make_account().id, api.workspace_id) is None
    with clock.moved_by(minutes=59):
        assert sessions.visit_in(staff.id, api.workspace_id) is not None
    with clock.moved_by(minutes=61):
        assert sessions.visit_in(staff.id, api.workspace_id) is None


def test_a_visit_can_be_ended(api: Api, staff: Account) -> None:
    visit = support_accounts.begin_visit(staff.id, api.workspace_id, "Reason", "T-1")

    support_accounts.end_visit(visit.id)
    support_accounts.end_visit(visit.id)

    assert sessions.visit_in(staff.id, api.workspace_id) is None
    assert [entry.action for entry in entries(api.workspace_id)] == ["visits.begin", "visits.end"]


@pytest.mark.parametrize(
    ("reason", "ticket", "faulty"),
    [
        ("", "T-1", ["/reason"]),
        ("  ", " ", ["/reason", "/ticket"]),
        ("x" * 501, "T-1", ["/reason"]),
        ("Reason", "x" * 101, ["/ticket"]),
        ("a\0b", "T-1", ["/reason"]),
    ],
)
def test_a_visit_needs_a_reason_and_a_ticket(
    api: Api, staff: Account, reason: str, ticket: str, faulty: list[str]
) -> None:
    with pytest.raises(Invalid) as refused:
        support_accounts.begin_visit(staff.id, api.workspace_id, reason, ticket)

    assert [fault.pointer for fault in refused.value.faults] == faulty
    assert one("SELECT count(*) FROM visits") == one("SELECT count(*) FROM audit_entries") == 0


def test_only_support_visits(api: Api, others: Api) -> None:
    account, _ = make_member(others.workspace_id)

    with pytest.raises(NotFound):
        support_accounts.begin_visit(account.id, api.workspace_id, "Reason", "T-1")


def test_a_workspace_that_is_not_there_cannot_be_visited(api: Api, staff: Account) -> None:
    with pytest.raises(NotFound):
        support_accounts.begin_visit(staff.id, ids.new("ws"), "Reason", "T-1")


def test_the_workspace_sees_the_visit_with_its_reason_and_ticket(api: Api, staff: Account) -> None:
    visit = support_accounts.begin_visit(staff.id, api.workspace_id, "Reason", "T-1")

    [shown] = api.get("webhooks/audit-log").json["data"]

    assert shown["action"] == "visits.begin"
    assert shown["actor"] == {"type": "support", "id": visit.id}
    assert shown["target"] == {"type": "visit", "id": visit.id}
    assert (shown["reason"], shown["ticket"]) == ("Reason", "T-1")


def test_what_is_done_in_a_visit_is_logged_with_its_reason_and_ticket(api: Api, staff: Account) -> None:
    endpoint_id = api.endpoint()
    visit = support_accounts.begin_visit(staff.id, api.workspace_id, "Reason", "T-1")
    job = accept(api.workspace_id, "endpoints.update", {"description": "Theirs"}, endpoint_id)
    rows("UPDATE jobs SET token_id = %s WHERE id = %s", (visit.id, job.id))
    api.apply()

    created, _, updated = entries(api.workspace_id)

    assert (created.actor_type, created.reason, created.ticket) == ("token", None, None)
    assert (updated.action, updated.actor_type, updated.actor_id) == ("endpoints.update", "support", visit.id)
    assert (updated.reason, updated.ticket) == ("Reason", "T-1")


def test_what_is_done_without_a_job_is_logged(api: Api) -> None:
    _, member = make_member(api.workspace_id)

    audit.note(api.workspace_id, member.id, "tokens.create", "token", "tok_1", {"name": "Shop"}, "trace-1")
    audit.note(api.workspace_id, None, "tokens.revoke", "token", "tok_1")

    first, second = entries(api.workspace_id)
    assert (first.actor_type, first.actor_id, first.action) == ("member", member.id, "tokens.create")
    assert (first.target_id, first.detail, first.trace_id) == ("tok_1", {"name": "Shop"}, "trace-1")
    assert (second.actor_type, second.actor_id, second.detail) == ("command", None, {})
