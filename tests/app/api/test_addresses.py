"""Two addresses: below the workspace, and without it for the token's own."""

from __future__ import annotations

import uuid

from flask import Flask

from tests.cast import KEY, Api
from tests.surface import ENDED, Operation, Scene, operations

LONG = "/workspaces/<workspace>/"


def test_every_route_below_a_workspace_has_both_addresses(app: Flask) -> None:
    without = ("/auth/me", "/workspaces/<workspace>")
    every = {str(operation) for operation in operations(app) if not operation.rule.endswith(without)}
    below = {operation for operation in every if LONG in operation}

    assert len(below) > 30
    assert {operation.replace(LONG, "/", 1) for operation in below} | below == every | below


def below_a_workspace(scene: Scene) -> list[Operation]:
    return [operation for operation in scene.operations if LONG in operation.rule]


def short_of(path: str, workspace_id: str) -> str:
    return path.replace(f"/workspaces/{workspace_id}/", "/", 1)


def test_every_read_shows_the_same_at_both(scene: Scene) -> None:
    for operation in [operation for operation in below_a_workspace(scene) if operation.method == "GET"]:
        path = scene.path(operation)
        shown, briefly = scene.ask(operation, path), scene.ask(operation, short_of(path, scene.ours.workspace_id))
        assert shown.status_code == briefly.status_code == 200, operation
        assert briefly.text == shown.text, operation


def test_every_write_is_accepted_at_both(scene: Scene) -> None:
    workspace_id = scene.ours.workspace_id

    for operation in below_a_workspace(scene):
        if operation.makes_job and not operation.takes_file:
            path = scene.path(operation)
            accepted, briefly = scene.ask(operation, path), scene.ask(operation, short_of(path, workspace_id))
            assert accepted.status_code == briefly.status_code, operation
            if ENDED.intersection(operation.nouns):
                assert briefly.get_json(force=True)["detail"] == accepted.get_json(force=True)["detail"], operation
            else:
                assert accepted.status_code == 202, operation
                assert briefly.json["data"]["kind"] == accepted.json["data"]["kind"], operation
                assert f"/workspaces/{workspace_id}/jobs/" in briefly.headers["Location"], operation


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
