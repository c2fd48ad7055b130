"""A 404 names the mistake in the path, and nothing that the caller does not know."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from app.api import missing
from app.lib import ids
from app.problems import PROBLEMS
from tests.cast import Api

NOTHING = PROBLEMS["not-found"].detail


def said(api: Api, path: str) -> str:
    answer = api.get(path)
    assert (answer.status_code, answer.json["type"].rpartition("/")[2]) == (404, "not-found")
    return str(answer.json["detail"])


@pytest.mark.parametrize(
    ("path", "given", "detail"),
    [
        ("conversations", "con", "the identifier of a contact (con_…), not of a conversation, which begins with cnv_."),
        ("webhooks/endpoints", "evt", "of an event (evt_…), not of an endpoint, which begins with whe_."),
        ("saved-replies", "mac", "of a macro (mac_…), not of a saved reply, which begins with srp_."),
        ("members", "tok", "of a token (tok_…), not of a member, which begins with mem_."),
    ],
)
def test_an_identifier_of_another_kind_is_told(api: Api, path: str, given: str, detail: str) -> None:
    assert said(api, f"{path}/{ids.new(given)}").endswith(detail)


def test_every_part_of_the_path_is_looked_at(api: Api) -> None:
    path = f"conversations/{ids.new('cnv')}/saved-replies/{ids.new('cnv')}"

    assert "(cnv_…), not of a saved reply" in said(api, path)


@pytest.mark.parametrize(
    "given", ["42", "customer-1042", "con_01kaj5bd40e6rr3f5y2kq0w9xzx", "zzz_01kaj5bd40e6rr3f5y2kq0w9xz"]
)
def test_what_is_no_identifier_is_told(api: Api, given: str) -> None:
    assert said(api, f"contacts/{given}").startswith("This is not the identifier of a contact, which begins with con_")


def test_the_right_kind_is_only_not_here(api: Api, others: Api) -> None:
    theirs = others.contact(email="ada@example.com")["id"]

    assert {said(api, f"contacts/{each}") for each in (theirs, ids.new("con"))} == {NOTHING}


def test_a_tokens_other_workspace_looks_like_none(api: Api, others: Api) -> None:
    contact = others.contact(email="ada@example.com")["id"]
    workspaces = [others.workspace_id, ids.new("ws"), "shop"]

    found = {said(api, f"/api/v1/workspaces/{each}/contacts/{contact}") for each in workspaces}

    assert found == {"The token is of another workspace than the one in the path."}


@pytest.mark.parametrize("path", ["/v1/contacts", "/api/contacts", "/api/v2/contacts", "/api/v1/nowhere"])
def test_an_address_that_is_not_there_is_a_problem_for_programs(client: FlaskClient, path: str) -> None:
    answer = client.get(path, headers={"Accept": "*/*"})

    assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")
    assert "begin with https://bellhop.test/api/v1/" in answer.get_json(force=True)["detail"]


@pytest.mark.parametrize("path", ["/contacts", "/v2/contacts", "/workspaces"])
def test_whoever_sends_a_token_gets_no_page(api: Api, path: str) -> None:
    answer = api.client.get(path, headers={"Accept": "*/*", "Authorization": f"Bearer {api.token}"})

    assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")
    assert "/api/v1/" in answer.get_json(force=True)["detail"]


def test_people_get_a_page(client: FlaskClient) -> None:
    for headers in ({}, {"Authorization": "Bearer of-a-proxy"}):
        answer = client.get("/nowhere", headers={"Accept": "text/html", **headers})

        assert answer.mimetype == "text/html", headers


def test_no_two_kinds_share_a_prefix() -> None:
    assert len(missing._KINDS) == len(missing.PREFIXES) - 1
