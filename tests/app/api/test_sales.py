from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from app import database
from app.domain.contacts import sales
from app.lib import clock
from tests.cast import Api, event_bodies, event_kinds, everything_stored, in_threads, one, working

KEY = "7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47"


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(email="ada@example.com")["id"])


def body_of(contact_id: str, **fields: Any) -> dict[str, Any]:
    return {"contact_id": contact_id, "amount": "19.90", "currency": "EUR"} | fields


def test_a_sale_is_recorded_with_all_its_fields(api: Api, contact_id: str) -> None:
    sale = api.sale(contact_id, reference="order-1", occurred_at="2026-11-20T23:30:00.5+02:00")

    assert sale == {
        "id": sale["id"],
        "contact_id": contact_id,
        "amount": "19.90",
        "currency": "EUR",
        "reference": "order-1",
        "occurred_at": "2026-11-20T21:30:00.500Z",
        "created_at": sale["created_at"],
    }
    assert re.fullmatch(r"sal_[0-9a-z]{26}", sale["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", sale["created_at"])


@pytest.mark.parametrize("time", ["2026-11-20t21:30:00.5z", "2026-11-20T13:30:00.500-08:00", "2026-11-20 21:30:00.5Z"])
def test_a_time_may_be_written_in_any_way_of_rfc_3339(api: Api, contact_id: str, time: str) -> None:
    assert api.sale(contact_id, occurred_at=time)["occurred_at"] == "2026-11-20T21:30:00.500Z"


def test_a_sale_without_a_time_happened_when_it_was_asked_for(api: Api, contact_id: str) -> None:
    with clock.moved_by(hours=-3):
        before = clock.now()
        asked = api.post("sales", body_of(contact_id))
        after = clock.now()

    sale = api.get(f"sales/{api.done(asked)['resource']['id']}").json["data"]

    assert before - timedelta(milliseconds=1) <= datetime.fromisoformat(sale["occurred_at"]) <= after
    assert sale["reference"] is None


def test_the_identifier_is_known_at_once(api: Api, contact_id: str) -> None:
    accepted = api.post("sales", body_of(contact_id))

    resource = accepted.json["data"]["resource"]
    assert resource["type"] == "sale"
    assert resource["url"] == f"https://bellhop.test{api.path('sales')}/{resource['id']}"
    assert api.get(f"sales/{resource['id']}").status_code == 404
    assert api.done(accepted)["resource"] == resource
    assert api.get(f"sales/{resource['id']}").json["data"]["id"] == resource["id"]


def test_a_caller_who_waits_gets_the_sale(api: Api, contact_id: str) -> None:
    with working():
        answer = api.post("sales", body_of(contact_id), wait=10)

    assert answer.status_code == 201
    assert answer.headers["Location"].endswith(f"/sales/{answer.json['data']['id']}")
    assert answer.json["data"]["amount"] == "19.90"


def test_a_sale_is_an_event_with_its_contact(api: Api, contact_id: str) -> None:
    sale = api.sale(contact_id, reference="order-1")

    told = event_bodies(api.workspace_id)[-1]

    assert told["kind"] == "sale.recorded"
    assert told["data"] == {"contact": api.told_contact(contact_id), "sale": sale}
    assert one("SELECT contact_id FROM events WHERE kind = 'sale.recorded'") == contact_id


# Amounts


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        ("19.9", "EUR", "19.90"),
        ("19.9000", "EUR", "19.90"),
        ("0", "EUR", "0.00"),
        ("0.01", "USD", "0.01"),
        ("500", "JPY", "500"),
        ("500.0", "JPY", "500"),
        ("1.5", "BHD", "1.500"),
        ("0.0001", "CLF", "0.0001"),
        ("900719925474099.31", "EUR", "900719925474099.31"),
        ("999999999999999.99", "EUR", "999999999999999.99"),
    ],
)
def test_an_amount_is_kept_to_the_last_digit(api: Api, contact_id: str, amount: str, currency: str, shown: str) -> None:
    sale = api.sale(contact_id, amount=amount, currency=currency)

    assert sale["amount"] == shown
    assert event_bodies(api.workspace_id)[-1]["data"]["sale"]["amount"] == shown
    assert str(one("SELECT amount FROM sales")) == shown


def test_an_amount_as_a_number_is_refused_with_a_hint(api: Api, contact_id: str) -> None:
    answer = api.post("sales", body_of(contact_id, amount=19.9))

    assert answer.status_code == 422
    assert answer.get_json(force=True)["errors"] == [
        {"pointer": "/amount", "detail": 'Give the amount as a string, such as "19.90".'}
    ]


def test_too_many_decimal_places_are_refused_with_how_many_there_may_be(api: Api, contact_id: str) -> None:
    answer = api.post("sales", body_of(contact_id, amount="19.905"))

    assert answer.get_json(force=True)["errors"] == [
        {"pointer": "/amount", "detail": "An amount in EUR has at most 2 decimal places."}
    ]


# References


def test_a_second_sale_with_a_reference_is_refused_at_once_and_names_the_first(api: Api, contact_id: str) -> None:
    first = api.sale(contact_id, reference="order-1")

    answer = api.post("sales", body_of(contact_id, reference="order-1", amount="5.00"))

    problem = answer.get_json(force=True)
    assert (answer.status_code, problem["type"]) == (409, "https://bellhop.test/problems/conflict")
    assert problem["conflicting_sale_id"] == first["id"]
    assert one("SELECT count(*) FROM jobs WHERE kind = 'sales.create'") == 1


def test_of_two_sales_with_a_reference_that_wait_the_second_fails_and_names_the_first(
    api: Api, contact_id: str
) -> None:
    first, second, third = (
        api.post("sales", body_of(contact_id, reference=reference)) for reference in ("order-1", "order-1", "order-2")
    )

    api.apply()

    assert [api.job(job)["status"] for job in (first, second, third)] == ["succeeded", "failed", "succeeded"]
    problem = api.job(second)["problem"]
    assert (problem["status"], problem["conflicting_sale_id"]) == (409, api.job(first)["resource"]["id"])
    assert "order-1" not in json.dumps(problem)
    assert event_kinds(api.workspace_id).count("sale.recorded") == 2


def test_of_many_sales_with_a_reference_at_once_one_is_recorded(api: Api, contact_id: str) -> None:
    in_threads([lambda: api.post("sales", body_of(contact_id, reference="order-1"))] * 10)

    api.apply()

    assert one("SELECT count(*) FROM sales") == 1


def test_sales_without_a_reference_are_all_recorded(api: Api, contact_id: str) -> None:
    api.sale(contact_id)
    api.sale(contact_id, reference=None)

    assert one("SELECT count(*) FROM sales") == 2


def test_references_are_case_sensitive(api: Api, contact_id: str) -> None:
    assert api.sale(contact_id, reference="a")["id"] != api.sale(contact_id, reference="A")["id"]


def test_references_are_of_one_workspace(api: Api, others: Api, contact_id: str) -> None:
    api.sale(contact_id, reference="order-1")
    theirs = others.sale(others.contact(email="eve@example.com")["id"], reference="order-1")

    assert theirs["reference"] == "order-1"


# Contacts


def test_a_sale_to_a_contact_that_was_deleted_meanwhile_fails_at_contact_id(api: Api, contact_id: str) -> None:
    deleting = api.delete(f"contacts/{contact_id}")
    selling = api.post("sales", body_of(contact_id))

    api.apply()

    assert api.job(deleting)["status"] == "succeeded"
    job = api.job(selling)
    assert (job["status"], job["problem"]["status"]) == ("failed", 422)
    assert job["problem"]["type"] == "https://bellhop.test/problems/validation-failed"
    assert [error["pointer"] for error in job["problem"]["errors"]] == ["/contact_id"]
    assert one("SELECT count(*) FROM sales") == 0
    assert "sale.recorded" not in event_kinds(api.workspace_id)


def test_a_caller_who_waits_for_a_sale_that_fails_gets_its_problem(api: Api, contact_id: str) -> None:
    api.delete(f"contacts/{contact_id}")
    selling = api.post("sales", body_of(contact_id), key=KEY)
    api.apply()

    answer = api.post("sales", body_of(contact_id), key=KEY, wait=5)

    assert (answer.status_code, answer.headers["Idempotent-Replayed"]) == (422, "true")
    assert answer.get_json(force=True)["errors"] == api.job(selling)["problem"]["errors"]


def test_deleting_a_contact_keeps_its_sales_for_the_books_and_nothing_that_leads_to_it(
    api: Api, contact_id: str
) -> None:
    api.endpoint()
    sale = api.sale(contact_id, reference="order-of-ada")

    api.done(api.delete(f"contacts/{contact_id}"))

    assert api.get(f"sales/{sale['id']}").json["data"] == sale | {"contact_id": None, "reference": None}
    assert "order-of-ada" not in everything_stored()


def test_deleting_a_contact_leaves_the_sales_of_others_alone(api: Api, contact_id: str) -> None:
    kept = api.sale(api.contact(email="eve@example.com")["id"], reference="order-of-eve")
    api.sale(contact_id, reference="order-of-ada")

    api.done(api.delete(f"contacts/{contact_id}"))

    assert api.get(f"sales/{kept['id']}").json["data"] == kept


def test_a_reference_is_free_again_when_its_contact_was_deleted(api: Api, contact_id: str) -> None:
    api.sale(contact_id, reference="order-1")
    api.done(api.delete(f"contacts/{contact_id}"))

    again = api.sale(api.contact(email="eve@example.com")["id"], reference="order-1")

    assert again["reference"] == "order-1"


def test_deleting_a_contact_erases_what_a_broken_sale_was_asked(
    api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(sales, "represent", None)
        assert api.done(api.post("sales", body_of(contact_id, reference="order-of-ada")))["status"] == "failed"
    assert "order-of-ada" in everything_stored()

    api.done(api.delete(f"contacts/{contact_id}"))

    assert "order-of-ada" not in everything_stored()


# Lists


@pytest.fixture
def three(api: Api, contact_id: str) -> list[str]:
    """The identifiers of three sales, newest first; the second is to another contact."""
    other = api.contact(email="eve@example.com")["id"]
    made = [
        api.sale(contact_id, reference="order-1", occurred_at="2026-11-01T00:00:00Z"),
        api.sale(other, reference="order-2", occurred_at="2026-11-03T00:00:00Z"),
        api.sale(contact_id, occurred_at="2026-11-02T00:00:00Z"),
    ]
    return [sale["id"] for sale in reversed(made)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [0, 1, 2]),
        ("reference=order-2", [1]),
        ("reference=ORDER-2", []),
        ("contact_id=x", []),
        ("occurred_since=2026-11-02T00:00:00Z", [1, 0]),
        ("occurred_until=2026-11-09T00:00:00Z", [1, 0, 2]),
        ("occurred_until=2026-11-02T00:00:00Z", [2]),
        ("occurred_since=2026-11-02T02:00:00%2B02:00&occurred_until=2026-11-03T00:00:00Z", [0]),
        ("occurred_since=2026-11-03T00:00:00Z&occurred_until=2026-11-01T00:00:00Z", []),
        ("reference=order-1&occurred_since=2026-11-02T00:00:00Z", []),
    ],
)
def test_a_filter_finds(api: Api, three: list[str], query: str, found: list[int]) -> None:
    answer = api.get(f"sales?{query}")

    assert answer.status_code == 200, answer.text
    assert [sale["id"] for sale in answer.json["data"]] == [three[number] for number in found]


def test_the_sales_of_one_contact_are_found(api: Api, three: list[str], contact_id: str) -> None:
    found = api.get(f"sales?contact_id={contact_id}&limit=1").json
    rest = api.get(f"sales?contact_id={contact_id}&limit=1&cursor={found['meta']['nextCursor']}").json

    assert [sale["id"] for sale in found["data"] + rest["data"]] == [three[0], three[2]]
    assert rest["meta"]["hasMore"] is False


# What it costs


@pytest.mark.parametrize(("fields", "statements"), [({}, 2), ({"reference": "order-1"}, 3)], ids=str)
def test_a_sale_is_accepted_with_a_look_at_its_contact_and_its_reference(
    api: Api, contact_id: str, fields: dict[str, Any], statements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = database.Database.execute_sql

    def count(self: Any, sql: Any, parameters: Any = None) -> Any:
        seen.append(str(sql))
        return real(self, sql, parameters)

    monkeypatch.setattr(database.Database, "execute_sql", count)
    answer = api.post("sales", body_of(contact_id, **fields))

    assert answer.status_code == 202
    assert len([sql for sql in seen if "tokens" not in sql]) == statements, seen
