"""Tokens on pages: made once, shown once, revoked."""

from __future__ import annotations

import re

import pytest

from app import database
from app.domain.people import tokens
from app.errors import Unauthenticated
from app.lib import ids
from app.models.base import page_before
from app.models.tokens import Token
from tests.cast import Api, all_of, indexes_used, one
from tests.pages import Person

TOKENS = "settings/developers/tokens"
FIELDS = {"name": "Shop", "access": "everything", "expires": "", "token_id": ""}


def fields(**changes: object) -> dict[str, object]:
    return FIELDS | {"token_id": ids.new("tok")} | changes


def shown(text: str) -> list[str]:
    return re.findall(r"<code>(bhp_\w{36})</code>", text)


def test_a_token_is_shown_once_and_works(owner: Person, api: Api) -> None:
    answer = owner.post(f"{TOKENS}/new", fields())

    assert answer.status_code == 200
    [token] = shown(answer.text)
    assert api.with_token(token).get("/api/v1/auth/me").json["data"]["token"]["name"] == "Shop"
    assert answer.headers["Cache-Control"] == "no-store"
    assert token not in str(answer.headers)
    assert token not in owner.get(TOKENS).text
    assert f"Bearer {token}" in answer.text.replace("&#39;", "'")


def test_a_second_click_makes_no_second_token_and_does_not_show_the_first(owner: Person) -> None:
    once = fields()
    owner.post(f"{TOKENS}/new", once)

    again = owner.post(f"{TOKENS}/new", once)

    assert again.status_code == 409
    assert "made already" in again.text
    assert shown(again.text) == []
    assert one("SELECT count(*) FROM tokens WHERE name = 'Shop'") == 1


def test_a_token_has_the_restrictions_and_the_end_that_were_chosen(owner: Person, api: Api) -> None:
    answer = owner.post(f"{TOKENS}/new", fields(access="some", restrictions=["webhooks", "contacts"], expires="7"))

    caller = tokens.authenticate(shown(answer.text)[0])
    assert caller.restrictions == ("contacts", "webhooks")
    assert one("SELECT expires_at - created_at FROM tokens WHERE name = 'Shop'").days in (6, 7)
    listed = owner.page(TOKENS)
    assert "contacts, webhooks" in listed
    assert "never" in listed


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": ""}, "A name has 1 to 255 characters"),
        ({"name": "a\0b"}, "A name has 1 to 255 characters"),
        ({"access": "some"}, "Tick what the token may do"),
        ({"access": "some", "restrictions": ["all"]}, "is none of contacts"),
        ({"expires": "12345"}, "Choose when the token expires"),
    ],
)
def test_a_bad_form_makes_no_token_and_keeps_what_was_typed(
    owner: Person, changes: dict[str, object], sentence: str
) -> None:
    typed = fields(name="Kept", **{"expires": "30"}) | changes

    answer = owner.post(f"{TOKENS}/new", typed)

    assert answer.status_code == 422
    assert sentence in answer.text
    assert f'value="{typed["token_id"]}"' in answer.text
    assert "name" in changes or 'value="Kept"' in answer.text
    assert one("SELECT count(*) FROM tokens") == 1


def test_a_form_without_its_identifier_makes_nothing(owner: Person) -> None:
    assert owner.post(f"{TOKENS}/new", fields(token_id="tok_1")).status_code == 404


def test_a_revoked_token_is_refused_and_the_log_says_who_revoked_it(owner: Person, api: Api) -> None:
    token_id, token = tokens.issue(api.workspace_id, "Old")

    for _ in range(2):
        assert owner.post(f"{TOKENS}/{token_id}/revoke").status_code == 303

    with pytest.raises(Unauthenticated):
        tokens.authenticate(token)
    assert "revoked" in owner.page(TOKENS)
    assert all_of("SELECT action FROM audit_entries WHERE target_id = %s", token_id) == ["tokens.revoke"]
    assert one("SELECT actor_type FROM audit_entries WHERE target_id = %s", token_id) == "member"


def test_the_log_says_who_made_a_token_but_not_the_token(owner: Person) -> None:
    [token] = shown(owner.post(f"{TOKENS}/new", fields()).text)

    assert one("SELECT actor_type FROM audit_entries WHERE action = 'tokens.create'") == "member"
    assert token not in one("SELECT detail::text FROM audit_entries WHERE action = 'tokens.create'")


def test_a_token_of_another_workspace_cannot_be_revoked(owner: Person, others: Api) -> None:
    token_id, token = tokens.issue(others.workspace_id, "Theirs")

    assert owner.post(f"{TOKENS}/{token_id}/revoke").status_code == 404
    assert tokens.authenticate(token).token_id == token_id


def test_the_identifier_of_another_workspaces_token_makes_nothing(owner: Person, others: Api) -> None:
    token_id, _ = tokens.issue(others.workspace_id, "Theirs")

    assert owner.post(f"{TOKENS}/new", fields(token_id=token_id)).status_code == 409
    assert one("SELECT name FROM tokens WHERE id = %s", token_id) == "Theirs"


def test_agents_strangers_and_staff_get_no_tokens(agent: Person, stranger: Person, support: Person, api: Api) -> None:
    support.visit()
    token_id, _ = tokens.issue(api.workspace_id, "Ours")

    for path in (TOKENS, f"{TOKENS}/new"):
        assert [who.get(path).status_code for who in (agent, stranger, support)] == [403, 404, 403]
    for path in (f"{TOKENS}/new", f"{TOKENS}/{token_id}/revoke"):
        assert [who.post(path, fields()).status_code for who in (agent, stranger, support)] == [403, 404, 403]
    assert one("SELECT count(*) FROM tokens WHERE revoked_at IS NOT NULL") == 0


def test_names_are_escaped(owner: Person) -> None:
    owner.post(f"{TOKENS}/new", fields(name="<script>alert(1)</script>" + "x" * 175))

    assert "<script>alert" not in owner.get(TOKENS).text
    assert "<script>alert(1)" in owner.page(TOKENS)


def test_a_workspace_whose_tokens_were_never_used_is_shown_a_first_request(owner: Person, api: Api) -> None:
    assert "curl -X POST https://bellhop.test/api/v1/contacts" in owner.page(TOKENS)

    api.get("contacts")

    assert "curl" not in owner.page(TOKENS)


def test_the_list_reads_the_tokens_of_one_workspace_by_index(owner: Person, others: Api) -> None:
    for _ in range(200):
        tokens.issue(others.workspace_id, "Theirs")
    database.rows("ANALYZE tokens")

    found = Token.select().where(Token.workspace_id == owner.workspace_id)
    assert indexes_used(page_before(found, Token, [ids.new("tok")], 51)) == {"tokens_page"}
