from __future__ import annotations

import pytest

from app.lib import ids


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
