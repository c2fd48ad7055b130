"""Pages about people take few statements, however many rows there are."""

from __future__ import annotations

import pytest

from app.domain.people import links, notifications
from app.domain.work import audit
from tests.cast import Api
from tests.pages import Person
from tests.people import make_account, make_member, signed_in


@pytest.mark.parametrize("path", ["settings/members", "settings/audit", "notifications", "/account", "/workspaces"])
def test_a_page_takes_few_statements_however_many_rows(
    owner: Person, support: Person, api: Api, statements: list[str], path: str
) -> None:
    account, member = make_member(api.workspace_id, "many@shop.example")
    for number in range(30):
        make_member(api.workspace_id, f"member-{number}@shop.example", "agent")
        links.invite(api.workspace_id, f"invited-{number}@shop.example", "agent")
        audit.note(api.workspace_id, member.id, "tokens.create", "token", f"tok_{number}")
        detail = {"import_id": "imp_1", "total": 1, "done": 1, "failed": 0}
        notifications.note(api.workspace_id, "import_ended", str(number), detail)
        signed_in(account)
    support.visit()

    for person in (owner, support):
        statements.clear()
        person.page(path)
        assert len(statements) <= 12, statements


def test_signing_in_takes_few_statements_whoever_it_is(owner: Person, statements: list[str]) -> None:
    make_account("ada@example.com")
    browser = owner.client.application.test_client()
    token = browser.get("/sign-in").text.split('name="csrf_token" value="')[1].split('"')[0]
    counts = []
    for email in ("ada@example.com", "nobody@example.com"):
        statements.clear()
        sent = {"csrf_token": token, "email": email, "password": "wrong password"}
        assert browser.post("/sign-in", data=sent).status_code == 422
        counts.append(len(statements))

    assert counts[0] == counts[1] <= 6
