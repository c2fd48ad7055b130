from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator

import pytest
from werkzeug.test import TestResponse

from app import bells
from app.config import settings
from app.domain.people import rate_limits
from tests.cast import Api, one, row_counts
from tests.conftest import Servers

Limit = Callable[[int], None]


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Limit]:
    """Sets RATE_LIMIT, as a restart with another does."""

    def limit(per_minute: int) -> None:
        monkeypatch.setenv("RATE_LIMIT", str(per_minute))
        settings.cache_clear()
        rate_limits._limiter.cache_clear()

    yield limit
    monkeypatch.undo()
    settings.cache_clear()
    rate_limits._limiter.cache_clear()


def standing(answer: TestResponse) -> tuple[int, int]:
    """`r` and `t` of the response."""
    [value] = answer.headers.getlist("RateLimit")
    found = re.fullmatch(r'"default";r=(\d+);t=(\d+)', value)
    assert found, value
    return int(found[1]), int(found[2])


def left(answer: TestResponse) -> int:
    return standing(answer)[0]


def use_up(api: Api) -> TestResponse:
    """Makes requests until one is refused."""
    while (answer := api.get("/api/v1/auth/me")).status_code != 429:
        assert answer.status_code == 200
    return answer


def test_every_response_has_the_limit_and_what_is_left(api: Api, limit: Limit) -> None:
    limit(6)

    answers = [api.get("contacts"), api.post("contacts", {"email": "ada@example.com"}), api.get("/api/v1/auth/me")]

    assert [answer.headers.getlist("RateLimit-Policy") for answer in answers] == [['"default";q=6;w=60']] * 3
    assert [left(answer) for answer in answers] == [5, 4, 3]
    assert all(1 <= standing(answer)[1] <= 10 for answer in answers)


def test_the_limit_is_6000_requests_a_minute_unless_it_is_set(api: Api) -> None:
    answer = api.get("/api/v1/auth/me")

    assert answer.headers["RateLimit-Policy"] == '"default";q=6000;w=60'
    assert standing(answer) == (5999, 1)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "contacts/con_none", 404),
        ("GET", "/api/v1/workspaces/ws_other/contacts", 404),
        ("GET", "nowhere", 404),
        ("PUT", "contacts", 405),
        ("GET", "contacts?limit=0", 422),
        ("POST", "contacts", 422),
        ("HEAD", "contacts", 200),
    ],
)
def test_refused_requests_count_too(api: Api, limit: Limit, method: str, path: str, status: int) -> None:
    limit(30)

    answer = api.ask(method, path)

    assert (answer.status_code, standing(answer)) == (status, (29, 2))


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/api/v1/nowhere", 404), ("PUT", "contacts", 405)])
def test_what_leads_nowhere_needs_no_token(api: Api, limit: Limit, method: str, path: str, status: int) -> None:
    limit(30)

    answer = api.with_token("bhp_wrong").ask(method, path)

    assert answer.status_code == status
    assert "RateLimit" not in answer.headers


def test_a_lack_of_access_counts_too(api: Api, limit: Limit) -> None:
    limit(30)

    answer = api.restricted_to("inbox").get("contacts")

    assert (answer.status_code, standing(answer)) == (403, (29, 2))


def test_the_response_to_one_request_too_many_says_when_to_retry(api: Api, limit: Limit) -> None:
    limit(6)

    answer = use_up(api)

    assert answer.mimetype == "application/problem+json"
    document = answer.get_json(force=True)
    assert document["type"] == "https://bellhop.test/problems/rate-limited"
    assert document["traceId"] == answer.headers["X-Request-Id"]
    [retry_after] = answer.headers.getlist("Retry-After")
    assert 1 <= int(retry_after) <= 10
    assert standing(answer) == (0, int(retry_after))
    assert document["detail"] == f"This token may make 6 requests a minute. Try again in {retry_after} s."


def test_a_write_too_many_leaves_no_trace_and_uses_up_no_key(api: Api, limit: Limit) -> None:
    limit(6)
    use_up(api)
    before, key = row_counts(), str(uuid.uuid4())

    refused = api.post("contacts", {"email": "ada@example.com"}, key=key)

    assert refused.status_code == 429
    assert row_counts() == before
    limit(0)
    later, again = (api.post("contacts", {"email": "ada@example.com"}, key=key) for _ in range(2))
    assert (later.status_code, later.headers.get("Idempotent-Replayed")) == (202, None)
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (202, "true")
    assert one("SELECT count(*) FROM jobs") == 1


def test_a_replay_counts_as_a_request(api: Api, limit: Limit) -> None:
    limit(6)
    key = str(uuid.uuid4())
    api.post("contacts", {"email": "ada@example.com"}, key=key)

    replay = api.post("contacts", {"email": "ada@example.com"}, key=key)

    assert replay.headers["Idempotent-Replayed"] == "true"
    assert left(replay) == 4


def test_another_token_of_the_workspace_has_its_own_limit(api: Api, limit: Limit) -> None:
    limit(6)
    use_up(api)

    assert standing(api.restricted_to("contacts").get("contacts")) == (5, 10)


def test_nothing_is_counted_without_a_valid_token(api: Api, limit: Limit) -> None:
    limit(6)

    answer = api.with_token("bhp_wrong").get("contacts")

    assert answer.status_code == 401
    assert "RateLimit" not in answer.headers
    assert bells.flags().keys("limit:*") == []


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/openapi.json", "/nowhere"])
def test_what_needs_no_token_is_not_counted(api: Api, limit: Limit, path: str) -> None:
    limit(6)
    use_up(api)

    answer = api.get(path)

    assert answer.status_code in (200, 404)
    assert "RateLimit" not in answer.headers


def test_options_needs_no_token_and_is_not_counted(api: Api, limit: Limit) -> None:
    limit(6)
    use_up(api)

    for caller in (api, api.with_token("bhp_wrong")):
        answer = caller.ask("OPTIONS", "contacts")
        assert answer.status_code == 200
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}


def test_without_a_limit_there_are_no_headers(api: Api, limit: Limit) -> None:
    limit(0)

    answer = api.get("contacts")

    assert answer.status_code == 200
    assert "RateLimit" not in answer.headers
    assert "RateLimit-Policy" not in answer.headers


def test_while_redis_is_away_requests_pass(api: Api, limit: Limit, servers: Servers) -> None:
    limit(6)
    use_up(api)
    servers.redis.kill()
    try:
        reads = [api.get("contacts") for _ in range(10)]
        write = api.post("contacts", {"email": "ada@example.com"})
    finally:
        servers.redis.start()

    assert [answer.status_code for answer in reads] == [200] * 10
    assert write.status_code == 202
    assert "RateLimit" not in write.headers
    assert one("SELECT count(*) FROM jobs") == 1
