"""Two addresses: below the workspace, and without it for the token's own."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests import surface
from tests.cast import KEY, Api, found, row_counts
from tests.later import schedule
from tests.surface import Operation

LONG = "/workspaces/<workspace>/"
# What `furnish` leaves of these has ended, and refuses to be changed.
ENDED = {"replay", "job"}
VALID = {"address": "https://shop.example/hooks", "ends_at": "2026-01-01T01:00:00Z", "events": ["*"]}


def short_of(path: str, workspace_id: str) -> str:
    return path.replace(f"/workspaces/{workspace_id}/", "/", 1)


@pytest.fixture
def long(app: Flask) -> list[Operation]:
    """Every operation below a workspace, without those that take another body than JSON."""
    every = [operation for operation in surface.operations(app) if LONG in operation.rule]
    return [operation for operation in every if operation.collection not in ("/contacts/import", "/uploads")]


def furnish(api: Api, operations: list[Operation]) -> dict[str, str]:
    return surface.furnish(api, "ada@example.com", {noun for operation in operations for noun in operation.nouns})


def sent(operation: Operation, known: dict[str, str]) -> dict[str, Any]:
    if operation.body is None:
        return {}
    sample = surface.sample(operation.body, known)
    return {"body": sample | {name: value for name, value in VALID.items() if name in sample}}


def test_every_route_below_a_workspace_has_both_addresses(app: Flask) -> None:
    without = ("/auth/me", "/workspaces/<workspace>")
    every = {str(operation) for operation in surface.operations(app) if not operation.rule.endswith(without)}
    below = {operation for operation in every if LONG in operation}

    assert len(below) > 30
    assert {operation.replace(LONG, "/", 1) for operation in below} | below == every | below


def test_every_read_shows_the_same_at_both(api: Api, long: list[Operation], subtests: pytest.Subtests) -> None:
    known = furnish(api, long)

    for operation in [operation for operation in long if operation.method == "GET"]:
        with subtests.test(str(operation)):
            path = operation.path(api.workspace_id, known)
            shown, briefly = api.get(path), api.get(short_of(path, api.workspace_id))
            assert shown.status_code == briefly.status_code == 200
            assert briefly.text == shown.text


def test_every_write_is_accepted_at_both(api: Api, long: list[Operation], subtests: pytest.Subtests) -> None:
    known = furnish(api, long)
    # Only one that was not sent can be changed.
    known["message"] = schedule(api, known["conversation"])

    for operation in [
        operation for operation in long if operation.writes and not operation.rule.endswith(("/typing", "/presence"))
    ]:
        with subtests.test(str(operation)):
            path = operation.path(api.workspace_id, known)
            accepted = api.ask(operation.method, path, **sent(operation, known))
            briefly = api.ask(operation.method, short_of(path, api.workspace_id), **sent(operation, known))
            assert accepted.status_code == briefly.status_code
            if ENDED.intersection(operation.nouns):
                assert briefly.json["detail"] == accepted.json["detail"]
            else:
                assert accepted.status_code == 202
                assert briefly.json["data"]["kind"] == accepted.json["data"]["kind"]
                assert f"/workspaces/{api.workspace_id}/jobs/" in briefly.headers["Location"]


def test_no_short_address_reaches_another_workspace(
    api: Api, client: FlaskClient, long: list[Operation], subtests: pytest.Subtests
) -> None:
    theirs = found(client, "Theirs")
    foreign = furnish(theirs, long)
    before = row_counts()

    for operation in [operation for operation in long if operation.nouns]:
        with subtests.test(str(operation)):
            path = short_of(operation.path(api.workspace_id, foreign), api.workspace_id)
            assert api.ask(operation.method, path, **sent(operation, foreign)).status_code == 404
    assert row_counts() == before


def test_an_import_is_accepted_at_the_short_address(api: Api) -> None:
    line = b'{"email": "ada@example.com"}'

    answer = api.post("/api/v1/contacts/import", data=line, content_type="application/jsonl")

    assert api.done(answer)["status"] == "succeeded"


def test_what_a_short_address_made_is_named_by_the_long_one(api: Api) -> None:
    job = api.done(api.post("/api/v1/contacts", {"email": "ada@example.com"}))

    below = f"https://bellhop.test/api/v1/workspaces/{api.workspace_id}/contacts/"
    assert job["resource"]["url"].startswith(below)


def test_a_key_stands_for_one_of_the_two_addresses(api: Api) -> None:
    ada = {"email": "ada@example.com"}
    first = api.post("/api/v1/contacts", ada, key=KEY)

    again, other = api.post("/api/v1/contacts", ada, key=KEY), api.post("contacts", ada, key=KEY)

    assert again.json == first.json
    assert (other.status_code, other.get_json(force=True)["type"].rpartition("/")[2]) == (
        422,
        "idempotency-key-reused",
    )
    assert api.post("contacts", ada, key=str(uuid.uuid4())).status_code == 202


def test_the_short_address_refuses_as_the_long_one_does(api: Api) -> None:
    narrow = api.restricted_to("billing")

    assert narrow.post("/api/v1/contacts", {"email": "ada@example.com"}).status_code == 403
    assert api.with_token("bhp_x").get("/api/v1/contacts/x").status_code == 401
    assert api.ask("PUT", "/api/v1/contacts").headers["Allow"] == api.ask("PUT", "contacts").headers["Allow"]
    assert api.get("/api/v1/nothing").status_code == 404
