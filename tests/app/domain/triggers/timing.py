"""Bookings and triggers by time for the tests of what these start, and time that passes for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from app.database import rows
from app.domain.triggers import due_starts, run_endings, start_scans
from app.domain.work.units import Unit
from app.models.bookings import Booking
from app.models.contacts import Contact
from tests.app.domain.triggers.triggering import do
from tests.cast import Api, accept, all_of, apply

HOUR, DAY = 3_600, 86_400
DAY_BEFORE = {"before": "booking.starts_at", "seconds": DAY}


def definition(*triggers: dict[str, Any]) -> dict[str, Any]:
    """A definition with these triggers; by default it starts a day before a booking."""
    return {"triggers": list(triggers) or [DAY_BEFORE], "steps": [{"id": "end", "kind": "stop"}]}


def publish(api: Api, *triggers: dict[str, Any], **fields: Any) -> str:
    return api.published(definition=definition(*triggers), **{"reentry": "every"} | fields)


def publish_again(api: Api, automation_id: str, *triggers: dict[str, Any]) -> None:
    api.done(api.patch(f"automations/{automation_id}", {"definition": definition(*triggers)}))
    assert api.done(api.post(f"automations/{automation_id}/publish"))["status"] == "succeeded"


def book(workspace_id: str, contact_id: str, **ahead: float) -> str:
    """Makes a booking that begins after this time, given as for `timedelta`; returns its identifier."""
    known = set(all_of("SELECT id FROM bookings"))
    starts = datetime.now(UTC) + timedelta(**ahead)
    times = {"starts_at": starts.isoformat(), "ends_at": (starts + timedelta(hours=1)).isoformat()}
    accept(
        workspace_id, "bookings.create", {"contact_id": contact_id, "title": "Haircut", **times}, f"bkg_{len(known)}"
    )
    apply(workspace_id)
    return str(*(set(all_of("SELECT id FROM bookings")) - known))


def move(workspace_id: str, contact_id: str, booking_id: str, **later: float) -> None:
    """Moves the booking as a verb that changes bookings would."""

    def task(unit: Unit) -> None:
        booking = unit.get(Booking, workspace_id, "id", booking_id)
        assert booking is not None
        by = timedelta(**later)
        unit.put(booking.altered(starts_at=booking.starts_at + by, ends_at=booking.ends_at + by))
        unit.recorder(workspace_id).record("booking.changed", {"booking": {"id": booking_id}}, contact_id)

    do(workspace_id, contact_id, task)


def merge(workspace_id: str, kept_id: str, other_id: str) -> None:
    """Makes one contact a part of another; its bookings and events are still to follow."""

    def task(unit: Unit) -> None:
        other, kept = (unit.get(Contact, workspace_id, "id", each) for each in (other_id, kept_id))
        assert other is not None
        assert kept is not None
        run_endings.hand_over(unit, other, kept)
        unit.drop(other)

    do(workspace_id, other_id, task)


def pass_time(**units: float) -> None:
    """Brings every time closer by this much, given as for `timedelta`."""
    by = timedelta(**units)
    rows("UPDATE bookings SET starts_at = starts_at - %s, ends_at = ends_at - %s RETURNING 1", (by, by))
    rows("UPDATE waiting_starts SET at = at - %s RETURNING 1", (by,))
    rows("UPDATE timed_triggers SET since = since - %s RETURNING 1", (by,))


def start_all() -> int:
    """Begins all that is due; returns how many rows that took. Fails if there is no end to it."""
    done = 0
    for _ in range(20):
        some = due_starts.start_some()
        done += some
        if some == 0:
            return done
    raise AssertionError("There is always more that is due.")


def scan_all() -> None:
    while rows(f"SELECT 1 WHERE {start_scans.IS_ANY_UNDER_WAY}"):
        start_scans.go_on()


def waits() -> list[tuple[str, float, bool]]:
    """What waits: the booking, in how many hours it is due, and whether it has fired; by booking and time."""
    found = rows(
        "SELECT booking_id, round(extract(epoch FROM at - now()) / 3600, 1)::float, fired_for IS NOT NULL"
        " FROM waiting_starts"
        " ORDER BY booking_id, at"
    )
    return [(booking_id, hours, has_fired) for booking_id, hours, has_fired in found]
