"""Refused requests are kept without costing the requests anything, and within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from flask.testing import FlaskClient

from app.database import DatabaseAway, rows
from app.domain.insight import refused_requests, searches
from app.domain.retention import delete_old
from app.lib import clock, ids
from tests.app.web.counting import counted_statements
from tests.cast import Api, all_of, one

TRACE = {"X-Request-Id": "quoted-by-the-customer"}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing that an earlier test was refused counts."""
    refused_requests._waiting.clear()
    refused_requests._minute = (0, {})
    yield
    refused_requests._waiting.clear()


def kept() -> list[tuple[object, ...]]:
    refused_requests.write_out()
    return rows("SELECT method, path, status, problem, pointers FROM refused_requests ORDER BY id")


def note(api: Api, number: int = 1, problem: str = "conflict") -> None:
    for _ in range(number):
        refused_requests.note(api.workspace_id, "tok_1", "t", ("POST", "/api"), (problem, 409))


def test_a_refused_request_is_kept_with_what_is_wrong_and_without_what_it_said(api: Api) -> None:
    api.post("contacts", {"email": "not an address", "phone": "12"})
    api.get("contacts/con_1")
    api.delete("contacts/con_01kaj5bd40e6rr3f5y2kq0w9xz/tags/eve@example.com")
    api.get("nowhere/eve@example.com?x=1")
    api.post("contacts/con_01kaj5bd40e6rr3f5y2kq0w9xz/tags/eve/merge")

    path = f"/api/v1/workspaces/{api.workspace_id}"
    assert kept() == [
        ("POST", f"{path}/contacts", 422, "validation-failed", ["/email", "/phone"]),
        ("GET", f"{path}/contacts/…", 404, "not-found", []),
        ("DELETE", f"{path}/contacts/con_01kaj5bd40e6rr3f5y2kq0w9xz/tags/…", 404, "not-found", []),
        ("GET", f"{path}/nowhere/…", 404, "not-found", []),
        ("POST", f"{path}/contacts/con_01kaj5bd40e6rr3f5y2kq0w9xz/tags/…/merge", 405, "method-not-allowed", []),
    ]


def test_it_is_found_by_its_request_id_in_its_own_workspace_and_by_staff(api: Api, others: Api) -> None:
    api.get("contacts/con_1", headers=TRACE)
    refused_requests.write_out()

    [inside], [anywhere] = (searches.find(TRACE["X-Request-Id"], each).found for each in (api.workspace_id, None))

    assert inside == anywhere
    assert (inside.type, inside.matched, inside.workspace_id) == ("refused request", "trace", api.workspace_id)
    assert searches.find(TRACE["X-Request-Id"], others.workspace_id).found == []


def test_a_request_without_a_valid_token_is_nobodys(api: Api, client: FlaskClient) -> None:
    for token in ("bhp_wrong", None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        assert client.get(api.path("contacts"), headers=headers).status_code == 401

    assert kept() == []


def test_a_request_to_another_workspace_belongs_to_its_token(api: Api, others: Api) -> None:
    assert api.client.get(others.path("contacts"), headers={"Authorization": f"Bearer {api.token}"}).status_code == 404
    refused_requests.write_out()

    assert all_of("SELECT workspace_id FROM refused_requests") == [api.workspace_id]


def test_a_refusal_asks_the_database_nothing_more(api: Api) -> None:
    api.get("contacts/con_1")
    with counted_statements() as asked:
        api.get("contacts/con_1")

    assert [statement for statement in asked if "refused_requests" in statement] == []


def test_of_a_million_refusals_few_are_noted_and_other_problems_and_workspaces_are_not_pushed_out(
    api: Api, others: Api
) -> None:
    note(api, 10_000, "rate-limited")
    note(api)
    note(others)

    refused_requests.write_out()
    counted = dict(rows("SELECT problem, count(*) FROM refused_requests GROUP BY problem"))
    assert counted == {"rate-limited": refused_requests.MOST_A_MINUTE, "conflict": 2}


def test_what_waits_to_be_written_is_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_requests, "MOST_WAITING", 3)
    for number in range(10):
        note(api, problem=f"p{number}")

    assert len(kept()) == 3


def test_the_oldest_of_a_problem_make_room(api: Api, others: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_requests, "MOST_KEPT", 3)
    note(api, 5)
    newest = [each.id for each in refused_requests._waiting][-3:]
    note(api, 2, "not-found")
    note(others, 2)
    refused_requests.write_out()

    of_api = "SELECT id FROM refused_requests WHERE workspace_id = %s AND problem = 'conflict' ORDER BY id"
    assert all_of(of_api, api.workspace_id) == newest
    assert one("SELECT count(*) FROM refused_requests") == 7


def test_what_could_not_be_written_is_written_later_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: object) -> None:
        raise DatabaseAway[0]("away")

    note(api, 3)
    noted = [each.id for each in refused_requests._waiting]
    with monkeypatch.context() as patch:
        patch.setattr(refused_requests, "_write", away)
        with pytest.raises(DatabaseAway):
            refused_requests.write_out()
    waiting = list(refused_requests._waiting)
    refused_requests.write_out()
    refused_requests._waiting.extend(waiting)  # the commit was not heard of
    refused_requests.write_out()

    assert all_of("SELECT id FROM refused_requests ORDER BY id") == noted


def test_refusals_are_kept_for_a_week(api: Api) -> None:
    note(api, 2)
    refused_requests.write_out()
    old = ids.bound("ref", clock.now() - refused_requests.KEPT - timedelta(minutes=1))
    rows("UPDATE refused_requests SET id = %s WHERE id = (SELECT min(id) FROM refused_requests)", (old,))

    assert delete_old("old_refused_requests") == 1
    assert one("SELECT count(*) FROM refused_requests") == 1
