"""The queries behind the list of bookings, explained with many rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import database
from app.models.base import page_before
from app.models.bookings import Booking
from tests.cast import indexes_used

AT = datetime(2026, 11, 1, tzinfo=UTC)
OURS, CONTACT = "ws_00000000000000000000000001", "con_00000000000000000000000000"


@pytest.fixture(scope="module")
def many_bookings(empty_for_module: None) -> None:
    """40,000 bookings of 200 workspaces, of ten contacts each, one a minute; one in a thousand is cancelled."""
    database.rows(
        "INSERT INTO workspaces (id, name) SELECT 'ws_' || lpad(number::text, 26, '0'), 'w'"
        " FROM generate_series(1, 200) AS number"
    )
    database.rows(
        "INSERT INTO bookings (id, workspace_id, contact_id, title, starts_at, ends_at, status)"
        " SELECT 'bkg_' || lpad(number::text, 26, '0'), 'ws_' || lpad((1 + number %% 200)::text, 26, '0'),"
        " 'con_' || lpad((number %% 2000)::text, 26, '0'), 'Haircut', at, at + interval '1 hour',"
        " CASE number %% 1000 WHEN 0 THEN 'cancelled' ELSE 'booked' END"
        " FROM generate_series(1, 40000) AS number, LATERAL (SELECT %s + number * interval '1 minute' AS at) AS time",
        (AT,),
    )
    # Of all rows, not of a sample by chance.
    database.rows("SET default_statistics_target = 200; ANALYZE bookings; RESET default_statistics_target")


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "bookings_page"),
        ({"contact_id": CONTACT}, "bookings_contact"),
        ({"status": "cancelled"}, "bookings_status"),
        ({"starts_since": AT}, "bookings_starts"),
        ({"starts_until": AT + timedelta(days=20)}, "bookings_starts"),
        ({"starts_since": AT, "starts_until": AT + timedelta(hours=1)}, "bookings_starts"),
        ({"starts_since": AT, "status": "cancelled"}, "bookings_status_starts"),
        ({"starts_since": AT, "contact_id": CONTACT}, "bookings_contact_starts"),
        ({"starts_until": AT + timedelta(days=20), "contact_id": CONTACT}, "bookings_contact_starts"),
    ],
    ids=str,
)
@pytest.mark.parametrize("last_id", [None, "bkg_00000000000000000000020000"], ids=["first page", "deep page"])
def test_every_filter_has_its_index(
    many_bookings: None, filters: dict[str, Any], index: str, last_id: str | None
) -> None:
    order = Booking.order(filters)
    last = [last_id and str(AT + timedelta(days=10)), last_id][-len(order) :]

    assert indexes_used(page_before(Booking.matching(OURS, filters), Booking, last, 50, order)) == {index}


def test_deleting_those_of_a_contact_reads_no_more_than_them(many_bookings: None) -> None:
    [index] = indexes_used(Booking.delete().where(Booking.contact_id == CONTACT))

    assert index in ("bookings_contact", "bookings_contact_starts")
