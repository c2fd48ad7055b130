from __future__ import annotations

import re
from typing import Any

import pytest

from app.domain.contacts import bookings
from tests.cast import Api, event_bodies, event_kinds, everything_stored, in_threads, one, working


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(email="ada@example.com")["id"])


def body_of(contact_id: str, **fields: Any) -> dict[str, Any]:
    times = {"starts_at": "2026-11-24T12:00:00Z", "ends_at": "2026-11-24T12:45:00Z"}
    return {"contact_id": contact_id, "title": "Haircut"} | times | fields


def test_a_booking_is_made_with_all_its_fields(api: Api, contact_id: str) -> None:
    booking = api.booking(
        contact_id, title="Haircut", starts_at="2026-11-24T12:00:00.5+01:00", ends_at="2026-11-24T12:45:00Z"
    )

    assert booking == {
        "id": booking["id"],
        "contact_id": contact_id,
        "title": "Haircut",
        "starts_at": "2026-11-24T11:00:00.500Z",
        "ends_at": "2026-11-24T12:45:00.000Z",
        "status": "booked",
        "created_at": booking["created_at"],
    }
    assert re.fullmatch(r"bkg_[0-9a-z]{26}", booking["id"])


def test_the_shortest_booking_is_a_millisecond(api: Api, contact_id: str) -> None:
    booking = api.booking(contact_id, starts_at="2026-11-24T12:00:00.000900Z", ends_at="2026-11-24T12:00:00.001900Z")

    assert (booking["starts_at"], booking["ends_at"]) == ("2026-11-24T12:00:00.000Z", "2026-11-24T12:00:00.001Z")


def test_a_caller_who_waits_gets_the_booking(api: Api, contact_id: str) -> None:
    with working():
        answer = api.post("bookings", body_of(contact_id), wait=10)

    assert answer.status_code == 201
    assert answer.headers["Location"].endswith(f"/bookings/{answer.json['data']['id']}")


def test_a_booking_is_an_event_with_its_contact(api: Api, contact_id: str) -> None:
    booking = api.booking(contact_id)

    told = event_bodies(api.workspace_id)[-1]

    assert told["kind"] == "booking.created"
    assert told["data"] == {"contact": api.told_contact(contact_id), "booking": booking}
    assert one("SELECT contact_id FROM events WHERE kind = 'booking.created'") == contact_id


# Cancelling one


def test_a_cancelled_booking_is_an_event(api: Api, contact_id: str) -> None:
    booking = api.booking(contact_id)

    job = api.done(api.post(f"bookings/{booking['id']}/cancel"))

    cancelled = booking | {"status": "cancelled"}
    assert (job["status"], job["resource"]["id"]) == ("succeeded", booking["id"])
    assert api.get(f"bookings/{booking['id']}").json["data"] == cancelled
    told = event_bodies(api.workspace_id)[-1]
    assert (told["kind"], told["data"]["booking"]) == ("booking.cancelled", cancelled)
    assert told["data"]["contact"] == api.told_contact(contact_id)
    assert one("SELECT contact_id FROM events WHERE kind = 'booking.cancelled'") == contact_id


def test_cancelling_again_changes_nothing_and_answers_with_the_booking(api: Api, contact_id: str) -> None:
    booking = api.booking(contact_id)
    with working():
        first = api.post(f"bookings/{booking['id']}/cancel", wait=10)
        second = api.post(f"bookings/{booking['id']}/cancel", wait=10)

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json == second.json == {"data": booking | {"status": "cancelled"}}
    assert event_kinds(api.workspace_id).count("booking.cancelled") == 1


def test_a_booking_cancelled_by_many_at_once_is_one_event(api: Api, contact_id: str) -> None:
    booking = api.booking(contact_id)

    in_threads([lambda: api.post(f"bookings/{booking['id']}/cancel")] * 10)
    in_threads([api.apply] * 3)
    api.apply()

    assert one("SELECT count(*) FROM jobs WHERE kind = 'bookings.cancel' AND status = 'succeeded'") == 10
    assert event_kinds(api.workspace_id).count("booking.cancelled") == 1


def test_a_booking_can_be_cancelled_before_it_is_made(api: Api, contact_id: str) -> None:
    made = api.post("bookings", body_of(contact_id))
    booking_id = made.json["data"]["resource"]["id"]

    cancelled = api.post(f"bookings/{booking_id}/cancel")
    api.apply()

    assert (api.job(made)["status"], api.job(cancelled)["status"]) == ("succeeded", "succeeded")
    assert api.get(f"bookings/{booking_id}").json["data"]["status"] == "cancelled"


def test_what_waits_under_that_identifier_but_is_no_booking_is_not_found(api: Api, contact_id: str) -> None:
    sale = api.post("sales", {"contact_id": contact_id, "amount": "1", "currency": "EUR"})

    assert api.post(f"bookings/{sale.json['data']['resource']['id']}/cancel").status_code == 404


def test_cancelling_a_booking_whose_making_failed_fails_with_not_found(api: Api, contact_id: str) -> None:
    api.delete(f"contacts/{contact_id}")
    made = api.post("bookings", body_of(contact_id))
    cancelled = api.post(f"bookings/{made.json['data']['resource']['id']}/cancel")

    api.apply()

    assert [api.job(job)["problem"]["status"] for job in (made, cancelled)] == [422, 404]


# Contacts


def test_a_booking_for_a_contact_that_was_deleted_meanwhile_fails_at_contact_id(api: Api, contact_id: str) -> None:
    api.delete(f"contacts/{contact_id}")

    job = api.done(api.post("bookings", body_of(contact_id)))

    assert (job["status"], job["problem"]["status"]) == ("failed", 422)
    assert [error["pointer"] for error in job["problem"]["errors"]] == ["/contact_id"]
    assert event_kinds(api.workspace_id) == ["contact.created", "contact.deleted"]


def test_deleting_a_contact_deletes_its_bookings(api: Api, contact_id: str) -> None:
    api.endpoint()
    booking = api.booking(contact_id, title="Haircut of Ada")
    api.done(api.post(f"bookings/{booking['id']}/cancel"))
    kept = api.booking(api.contact(email="eve@example.com")["id"])

    api.done(api.delete(f"contacts/{contact_id}"))

    assert api.get(f"bookings/{booking['id']}").status_code == 404
    assert api.get("bookings").json["data"] == [kept]
    assert "Haircut of Ada" not in everything_stored()


def test_deleting_a_contact_erases_what_a_broken_booking_was_asked(
    api: Api, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(bookings, "represent", None)
        assert api.done(api.post("bookings", body_of(contact_id, title="Haircut of Ada")))["status"] == "failed"
    assert "Haircut of Ada" in everything_stored()

    api.done(api.delete(f"contacts/{contact_id}"))

    assert "Haircut of Ada" not in everything_stored()


# Lists


@pytest.fixture
def three(api: Api, contact_id: str) -> list[str]:
    """The identifiers of three bookings, newest first; the second is another contact's, the third cancelled."""
    other = api.contact(email="eve@example.com")["id"]
    times = [
        (contact_id, "2026-11-01T10:00:00Z", "2026-11-01T11:00:00Z"),
        (other, "2026-11-03T10:00:00Z", "2026-11-03T11:00:00Z"),
        (contact_id, "2026-11-02T10:00:00Z", "2026-11-02T11:00:00Z"),
    ]
    made = [api.booking(who, starts_at=start, ends_at=end)["id"] for who, start, end in times]
    api.done(api.post(f"bookings/{made[0]}/cancel"))
    return made[::-1]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [0, 1, 2]),
        ("status=booked", [0, 1]),
        ("status=cancelled", [2]),
        ("contact_id=x", []),
        ("starts_since=2026-11-02T10:00:00Z", [1, 0]),
        ("starts_until=2026-11-09T00:00:00Z", [1, 0, 2]),
        ("starts_until=2026-11-02T10:00:00Z", [2]),
        ("starts_since=2026-11-02T00:00:00Z&starts_until=2026-11-03T00:00:00Z", [0]),
        ("status=booked&starts_until=2026-11-02T00:00:00Z", []),
    ],
)
def test_a_filter_finds(api: Api, three: list[str], query: str, found: list[int]) -> None:
    answer = api.get(f"bookings?{query}")

    assert answer.status_code == 200, answer.text
    assert [booking["id"] for booking in answer.json["data"]] == [three[number] for number in found]


def test_the_bookings_of_one_contact_are_found(api: Api, three: list[str], contact_id: str) -> None:
    found = api.get(f"bookings?contact_id={contact_id}&limit=1").json
    rest = api.get(f"bookings?contact_id={contact_id}&limit=1&cursor={found['meta']['nextCursor']}").json

    assert [booking["id"] for booking in found["data"] + rest["data"]] == [three[0], three[2]]
    assert rest["meta"]["hasMore"] is False
