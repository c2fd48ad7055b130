"""How many requests of one caller are under way."""

from __future__ import annotations

from app.serving.caller_limits import CallerLimits


def test_a_caller_has_so_many_turns_and_others_have_theirs() -> None:
    turns = CallerLimits(2)

    assert [turns.take(conn, "ada") for conn in (1, 2, 3)] == [True, True, False]
    assert [turns.take(conn, "bob") for conn in (4, 5, 6)] == [True, True, False]
    assert all(turns.take(conn, "") for conn in range(10, 20))
    assert turns.take(1, "ada")  # has it still


def test_a_turn_that_ends_is_the_next_ones() -> None:
    turns = CallerLimits(1)
    turns.take(1, "ada")

    assert [turns.wait(2, "ada"), turns.wait(3, "ada")] == [False, False]
    assert [turns.end(1), turns.end(1)] == [2, None]
    assert not turns.take(4, "ada")
    assert [turns.end(2), turns.end(3)] == [3, None]
    assert turns.take(4, "ada")


def test_a_turn_that_became_free_in_between_is_taken_at_once() -> None:
    turns = CallerLimits(1)
    turns.take(1, "ada")
    assert not turns.take(2, "ada")
    turns.end(1)

    assert turns.wait(2, "ada")
    assert turns.end(2) is None
