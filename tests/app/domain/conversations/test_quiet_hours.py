"""When quiet hours end, by the clocks of contacts and workspaces."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app import database
from app.domain.conversations import sending_checks
from app.domain.work.units import Unit
from app.lib import json
from app.models.contacts import Contact
from tests.cast import Api

NIGHT = {"from": "21:00", "to": "08:00"}
NOON = {"from": "12:00", "to": "13:30"}
EARLY = {"from": "02:30", "to": "05:00"}
LATE = {"from": "21:00", "to": "02:30"}


def end(at: str, hours: dict[str, str], *timezones: str | None) -> str | None:
    ends = sending_checks.quiet_hours_end(datetime.fromisoformat(f"{at}+00:00"), hours, *timezones)
    return ends and ends.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("at", "hours", "ends"),
    [
        ("2026-11-21 11:59", NOON, None),
        ("2026-11-21 12:00", NOON, "2026-11-21 13:30"),
        ("2026-11-21 13:29", NOON, "2026-11-21 13:30"),
        ("2026-11-21 13:30", NOON, None),
        ("2026-11-21 20:59", NIGHT, None),
        ("2026-11-21 21:00", NIGHT, "2026-11-22 08:00"),
        ("2026-11-21 23:59", NIGHT, "2026-11-22 08:00"),
        ("2026-11-22 00:00", NIGHT, "2026-11-22 08:00"),
        ("2026-11-22 07:59", NIGHT, "2026-11-22 08:00"),
        ("2026-11-22 08:00", NIGHT, None),
        ("2026-12-31 22:00", NIGHT, "2027-01-01 08:00"),
        ("2026-11-22 08:00", {"from": "08:00", "to": "08:00"}, None),
        ("2026-11-22 23:59", {"from": "00:00", "to": "00:00"}, None),
        ("2026-11-22 23:59", {"from": "20:00", "to": "00:00"}, "2026-11-23 00:00"),
        ("2026-11-23 00:00", {"from": "20:00", "to": "00:00"}, None),
    ],
)
def test_they_end_at_the_next_time_that_ends_them(at: str, hours: dict[str, str], ends: str | None) -> None:
    assert end(at, hours, "UTC") == ends


@pytest.mark.parametrize(
    ("timezones", "ends"),
    [
        (("Asia/Tokyo", "Europe/Berlin"), "2026-11-21 23:00"),
        ((None, "Asia/Tokyo"), "2026-11-21 23:00"),
        (("Mars/Olympus", "Asia/Tokyo"), "2026-11-21 23:00"),
        (("America", "../etc/passwd", "", "Asia/Tokyo"), "2026-11-21 23:00"),
        (("Europe/Berlin", "Asia/Tokyo"), None),
        ((None, "Mars/Olympus"), None),
        ((), None),
    ],
)
def test_they_follow_the_first_time_zone_that_exists(timezones: tuple[str | None, ...], ends: str | None) -> None:
    assert end("2026-11-21 12:30", NIGHT, *timezones) == ends


@pytest.mark.parametrize(
    ("at", "hours", "ends"),
    [
        # 29 March 2026: from 02:00 to 03:00 by clocks in Berlin, at 01:00 UTC.
        ("2026-03-28 20:00", NIGHT, "2026-03-29 06:00"),
        ("2026-03-29 06:00", NIGHT, None),
        ("2026-03-29 01:00", EARLY, None),
        ("2026-03-29 01:30", EARLY, "2026-03-29 03:00"),
        ("2026-03-29 01:29", LATE, "2026-03-29 01:30"),
        ("2026-03-29 01:30", LATE, None),
        # 25 October 2026: from 03:00 to 02:00, at 01:00 UTC. It is half past two at 00:30 and at 01:30.
        ("2026-10-24 19:00", NIGHT, "2026-10-25 07:00"),
        ("2026-10-25 00:30", EARLY, "2026-10-25 04:00"),
        ("2026-10-25 01:15", EARLY, "2026-10-25 04:00"),
        ("2026-10-25 00:45", LATE, "2026-10-25 01:30"),
        ("2026-10-25 01:29", LATE, "2026-10-25 01:30"),
        ("2026-10-25 01:30", LATE, None),
    ],
)
def test_they_follow_the_clock_when_it_changes(at: str, hours: dict[str, str], ends: str | None) -> None:
    assert end(at, hours, "Europe/Berlin") == ends


def test_a_message_that_waits_for_their_end_is_sent_then() -> None:
    for hours in (NIGHT, NOON, EARLY, LATE):
        for hour in range(24):
            for date in ("2026-03-28", "2026-03-29", "2026-10-24", "2026-10-25"):
                ends = end(f"{date} {hour:02}:10", hours, "Europe/Berlin")
                assert ends is None or end(ends, hours, "Europe/Berlin") is None


@pytest.fixture
def contact(api: Api) -> Contact:
    return Contact.get_by_id(api.contact(external_id="ada", timezone="Asia/Tokyo")["id"])


def hours_now_in_tokyo(unit: Unit) -> dict[str, str]:
    """Quiet hours that last in Tokyo when the test runs, and not in UTC."""
    hour = (unit.now.hour + 9) % 24
    return {"from": f"{(hour - 1) % 24:02}:00", "to": f"{(hour + 2) % 24:02}:00"}


def read_unit(contact: Contact) -> Unit:
    unit = Unit()
    with database.transaction():
        unit.get(Contact, contact.workspace_id, "id", contact.id)
    return unit


def test_the_hours_are_the_workspaces_and_the_clock_is_the_contacts(contact: Contact) -> None:
    unit = read_unit(contact)
    hours = hours_now_in_tokyo(unit)
    database.rows("UPDATE workspaces SET quiet_hours = %s, timezone = 'UTC'", (json.dumps(hours).decode(),))
    here = Contact(**{**contact.__data__, "timezone": None})

    assert sending_checks.quiet_until(unit, contact) is not None
    assert sending_checks.quiet_until(unit, here) is None


def test_a_workspace_without_quiet_hours_has_none(contact: Contact) -> None:
    assert sending_checks.quiet_until(read_unit(contact), contact) is None


def test_the_workspace_is_read_once_in_a_unit(contact: Contact, monkeypatch: pytest.MonkeyPatch) -> None:
    unit = read_unit(contact)
    sending_checks.quiet_until(unit, contact)
    monkeypatch.setattr(sending_checks, "rows", None)

    assert sending_checks.quiet_until(unit, contact) is None
