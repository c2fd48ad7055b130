from __future__ import annotations

import hashlib
import re
import time
from datetime import timedelta

import pytest

from app import database
from app.domain.people import tokens
from app.lib import clock, json
from app.lib.caches import Cache
from app.lib.token_format import new as new_token
from tests.cast import Api, in_threads, one, until


def test_an_unrestricted_token_is_shown_with_its_workspace(api: Api) -> None:
    answer = api.get("/api/v1/auth/me")

    assert answer.status_code == 200
    assert answer.json["data"]["workspace"] == {"id": api.workspace_id, "name": "Ours"}
    assert answer.json["data"]["token"] | {"id": "", "last_used_at": ""} == {
        "id": "",
        "name": "First token",
        "restrictions": None,
        "expires_at": None,
        "last_used_at": "",
    }
    assert answer.json["data"]["token"]["id"].startswith("tok_")


def test_a_restricted_token_is_shown_with_its_restrictions(api: Api) -> None:
    answer = api.restricted_to("inbox", "billing").get("/api/v1/auth/me")

    assert answer.status_code == 200
    assert answer.json["data"]["token"]["restrictions"] == ["billing", "inbox"]


def test_the_time_a_token_expires_is_shown_in_utc_with_milliseconds(api: Api) -> None:
    token_id, token = tokens.issue(api.workspace_id, "Short", expires_in_seconds=60)

    shown = api.with_token(token).get("/api/v1/auth/me").json["data"]["token"]

    assert shown["expires_at"] == json.timestamp(one("SELECT expires_at FROM tokens WHERE id = %s", token_id))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown["expires_at"])


def test_the_first_use_of_a_token_is_noted(api: Api) -> None:
    assert api.get("/api/v1/auth/me").json["data"]["token"]["last_used_at"] is None

    noted = one("SELECT last_used_at FROM tokens WHERE workspace_id = %s", api.workspace_id)

    assert abs(clock.now() - noted) < timedelta(seconds=30)


def test_a_later_use_is_noted_when_a_minute_is_over(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.get("/api/v1/auth/me")
    monkeypatch.setattr(tokens, "_remembered", Cache(1))

    with clock.moved_by(seconds=61):
        shown = api.get("/api/v1/auth/me").json["data"]["token"]
        noted = one("SELECT last_used_at FROM tokens WHERE workspace_id = %s", api.workspace_id)
        assert clock.now() - noted < timedelta(seconds=30)

    assert shown["last_used_at"] is not None


def test_a_token_stops_when_it_expires(api: Api) -> None:
    _, token = tokens.issue(api.workspace_id, "Short", expires_in_seconds=60)
    assert api.with_token(token).get("/api/v1/auth/me").status_code == 200

    with clock.moved_by(seconds=61):
        answer = api.with_token(token).get("/api/v1/auth/me")

    assert answer.status_code == 401


def test_a_revoked_token_stops_within_a_second_though_it_was_just_used(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_id = api.get("/api/v1/auth/me").json["data"]["token"]["id"]

    tokens.revoke(token_id)
    a_second_later = time.monotonic() + 1
    monkeypatch.setattr(time, "monotonic", lambda: a_second_later)

    assert api.get("/api/v1/auth/me").status_code == 401


def test_a_token_that_is_used_all_the_time_stops_too_when_it_is_revoked(api: Api) -> None:
    token_id = api.get("/api/v1/auth/me").json["data"]["token"]["id"]
    tokens.revoke(token_id)

    until(lambda: api.get("/api/v1/auth/me").status_code == 401)

    assert api.get("contacts").status_code == 401


def test_a_token_is_remembered_from_before_it_was_looked_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    look_up, looked_up = tokens._load, []

    def look_up_slowly(digest: bytes) -> tokens.Caller:
        looked_up.append(digest)
        found, late = look_up(digest), time.monotonic() + 1
        monkeypatch.setattr(time, "monotonic", lambda: late)
        return found

    monkeypatch.setattr(tokens, "_load", look_up_slowly)
    assert tokens.authenticate(api.token).workspace_id == api.workspace_id
    assert tokens.authenticate(api.token).workspace_id == api.workspace_id

    assert len(looked_up) == 2


def test_of_many_who_see_that_a_use_is_to_be_noted_one_writes(api: Api) -> None:
    token_id = one("SELECT id FROM tokens WHERE workspace_id = %s", api.workspace_id)

    in_threads([lambda: tokens._note_use(token_id, None)] * 8)

    assert one("SELECT last_used_at FROM tokens WHERE id = %s", token_id) is not None
    noted = one("SELECT xmin::text FROM tokens WHERE id = %s", token_id)
    tokens._note_use(token_id, None)
    assert one("SELECT xmin::text FROM tokens WHERE id = %s", token_id) == noted


def test_the_database_holds_only_the_digest_of_a_token(api: Api) -> None:
    kept = str(database.rows("SELECT * FROM tokens"))

    assert api.token not in kept
    assert hashlib.sha256(api.token.encode()).digest() == bytes(one("SELECT digest FROM tokens"))


def test_the_scheme_of_the_header_is_read_in_any_case(api: Api) -> None:
    assert api.get("/api/v1/auth/me", headers={"Authorization": f"bearer {api.token}"}).status_code == 200


def test_an_issued_token_is_recognised_by_its_prefix_and_length() -> None:
    assert re.fullmatch(r"bhp_[0-9A-Za-z]{36}", new_token())
