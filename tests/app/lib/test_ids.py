from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typeid import TypeID

from app.lib import ids

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
times = st.datetimes(EARLIEST.replace(tzinfo=None), LATEST.replace(tzinfo=None), timezones=st.just(UTC))


def made_at(at: datetime, random: bytes) -> str:
    """An identifier as it is made at that time: a UUIDv7 whose other bits are these."""
    milliseconds = (at - EARLIEST) // MILLISECOND
    version = bytes([0x70 | random[0] & 0x0F, random[1], 0x80 | random[2] & 0x3F])
    return str(TypeID.from_uuid(UUID(bytes=milliseconds.to_bytes(6, "big") + version + random[3:]), "con"))


def test_identifiers_begin_with_their_prefix_and_differ() -> None:
    made = [ids.new("con") for _ in range(1000)]

    assert all(ids.is_id(identifier, "con") for identifier in made)
    assert len(set(made)) == 1000


def test_identifiers_of_a_process_sort_by_the_order_in_which_they_were_made() -> None:
    made = [ids.new("con") for _ in range(1000)]

    assert made == sorted(made)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "con",
        "con_",
        "_01kaj5bd40e6rr3f5y2kq0w9xz",
        "msg_01kaj5bd40e6rr3f5y2kq0w9xz",
        "con_01kaj5bd40e6rr3f5y2kq0w9x",
        "con_01kaj5bd40e6rr3f5y2kq0w9xzz",
        "con_81kaj5bd40e6rr3f5y2kq0w9xz",
        "con_01KAJ5BD40E6RR3F5Y2KQ0W9XZ",
        "con_01kaj5bd40e6rr3f5y2kq0w9xu",
        "con_01kaj5bd40e6rr3f5y2kq0w9xz\n",
        " con_01kaj5bd40e6rr3f5y2kq0w9xz",
    ],
)
def test_what_is_no_identifier_of_the_prefix_is_told(text: str) -> None:
    assert not ids.is_id(text, "con")


# Bounds


@given(times, times, st.binary(min_size=10, max_size=10))
def test_an_identifier_is_at_or_above_the_bound_of_a_time_if_it_was_made_then_or_later(
    made: datetime, at: datetime, random: bytes
) -> None:
    identifier = made_at(made, random)

    assert (identifier >= ids.bound("con", at)) == (made >= at.replace(microsecond=at.microsecond // 1000 * 1000))


@given(times)
def test_a_bound_is_the_same_for_all_of_a_millisecond_and_grows_with_the_next(at: datetime) -> None:
    whole = at.replace(microsecond=at.microsecond // 1000 * 1000)

    assert ids.bound("con", at) == ids.bound("con", whole) < ids.bound("con", whole + MILLISECOND)
    assert ids.is_id(ids.bound("con", at), "con")


def test_identifiers_made_now_are_between_the_bounds_around_it() -> None:
    before = datetime.now(UTC)
    identifier = ids.new("con")
    after = datetime.now(UTC)

    assert ids.bound("con", before) <= identifier < ids.bound("con", after + MILLISECOND)


def test_a_bound_is_that_of_the_moment_whatever_its_zone() -> None:
    at = datetime.fromisoformat("2026-11-21T00:00:00+00:00")

    assert ids.bound("evt", at) == ids.bound("evt", datetime.fromisoformat("2026-11-21T05:30:00+05:30"))
    assert ids.bound("evt", at).startswith("evt_01m7xpe600")
    assert ids.bound("evt", at).endswith("0" * 16)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+00:00", "2026-11-21T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_a_rough_bound_leaves_room_for_clocks_that_are_apart(at: str) -> None:
    moment = datetime.fromisoformat(at)

    before, after = ids.around("con", moment, -1), ids.around("con", moment, 1)

    assert ids.is_id(before, "con")
    assert ids.is_id(after, "con")
    assert before < after


def test_what_is_made_now_is_within_the_rough_bounds() -> None:
    now = datetime.now(UTC)

    assert ids.around("con", now, -1) < ids.bound("con", now) < ids.around("con", now, 1)
