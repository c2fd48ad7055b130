"""Exports of a contact on pages."""

from __future__ import annotations

from tests.cast import Api
from tests.pages import Person


def test_everything_about_a_contact_is_a_file(owner: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    api.sale(contact["id"])

    answer = owner.get(f"contacts/{contact['id']}/export")

    assert answer.json == api.get(f"contacts/{contact['id']}/export").json
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{contact["id"]}.json"'


def test_only_owners_and_admins_of_the_workspace_export(
    agent: Person, stranger: Person, support: Person, api: Api
) -> None:
    contact = api.contact(email="ada@example.com")
    support.visit()

    path = f"contacts/{contact['id']}/export"
    assert [who.get(path).status_code for who in (agent, stranger, support)] == [403, 404, 403]


def test_a_contact_of_another_workspace_is_not_exported(owner: Person, others: Api) -> None:
    theirs = others.contact(email="theirs@example.com")

    assert owner.get(f"contacts/{theirs['id']}/export").status_code == 404
