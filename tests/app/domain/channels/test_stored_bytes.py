"""Allowances: how many bytes of files may be stored in an hour."""

from __future__ import annotations

import pytest

from app.bounds import Bound
from app.database import rows
from app.domain.channels import stored_bytes
from app.domain.retention import delete_old
from app.errors import TooMuchStored
from tests.cast import all_of, in_threads, one

pytestmark = pytest.mark.usefixtures("empty")

TEN, HUNDRED = Bound("ten", 10, "bytes an hour"), Bound("hundred", 100, "bytes an hour")


def test_what_goes_beyond_one_allowance_is_taken_from_none() -> None:
    stored_bytes.take(8, {"visitor": TEN, "channel": HUNDRED})

    with pytest.raises(TooMuchStored) as refused:
        stored_bytes.take(3, {"visitor": TEN, "channel": HUNDRED})

    assert 3_500 < refused.value.retry_after_seconds <= 3_600
    assert all_of("SELECT bytes FROM stored_bytes") == [8, 8]
    stored_bytes.take(2, {"visitor": TEN, "channel": HUNDRED})


def test_what_was_not_stored_is_given_back() -> None:
    stored_bytes.take(4, {"channel": HUNDRED})

    with pytest.raises(OSError, match="full"), stored_bytes.taken(6, {"visitor": TEN, "channel": HUNDRED}):
        raise OSError("The disk is full.")
    with stored_bytes.taken(5, {"visitor": TEN, "channel": HUNDRED}):
        pass

    assert sorted(all_of("SELECT bytes FROM stored_bytes")) == [5, 9]


def test_each_name_has_an_allowance_of_its_own() -> None:
    for name in "abc":
        stored_bytes.take(10, {name: TEN})

    assert all_of("SELECT bytes FROM stored_bytes") == [10, 10, 10]


def test_two_files_cannot_both_take_the_last_bytes() -> None:
    def take() -> bool:
        try:
            stored_bytes.take(4, {"visitor": TEN, "channel": HUNDRED})
        except TooMuchStored:
            return False
        return True

    assert sorted(in_threads([take] * 8)) == [False] * 6 + [True] * 2
    assert sorted(all_of("SELECT bytes FROM stored_bytes")) == [8, 8]


def test_an_hour_later_the_allowance_is_whole_again_and_forgotten() -> None:
    stored_bytes.take(10, {"a": TEN})
    rows("UPDATE stored_bytes SET ends_at = now() - interval '1 second'")
    stored_bytes.take(9, {"a": TEN})
    stored_bytes.take(10, {"b": TEN})
    rows("UPDATE stored_bytes SET ends_at = now() - interval '1 second' WHERE bytes = 10")

    assert delete_old("old_stored_bytes") == 1
    assert one("SELECT bytes FROM stored_bytes") == 9
