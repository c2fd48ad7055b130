"""What workers note of the messages that they take up."""

from __future__ import annotations

from typing import Any

import pytest
from dramatiq import Message

from app import bells
from workers.middleware import hearing
from workers.middleware.hearing import Hearing


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    noted: list[tuple[str, int]] = []
    monkeypatch.setattr(bells, "take_up", lambda queue_name, rung_at: noted.append((queue_name, rung_at)))
    return noted


def process(middleware: Hearing, queue: str, rung_at: int) -> None:
    message: Message[Any] = Message(
        queue_name=queue, actor_name=queue, args=(), kwargs={}, options={}, message_timestamp=rung_at
    )
    middleware.before_process_message(None, message)  # type: ignore[arg-type]


def test_of_many_messages_in_a_moment_one_for_each_queue_is_noted(
    noted: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "EVERY_SECONDS", 3600)
    middleware = Hearing()

    for rung_at in range(1, 5):
        process(middleware, "writes", rung_at)
        process(middleware, "sweeps", rung_at)

    assert noted == [("writes", 1), ("sweeps", 1)]


def test_after_a_while_the_next_message_is_noted(noted: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "EVERY_SECONDS", 0)
    middleware = Hearing()

    process(middleware, "writes", 1)
    process(middleware, "writes", 2)

    assert noted == [("writes", 1), ("writes", 2)]


def test_a_message_out_of_turn_is_not_noted(noted: list[tuple[str, int]]) -> None:
    message: Message[Any] = Message("writes", "writes", (), {}, {bells.OUT_OF_TURN: True})

    Hearing().before_process_message(None, message)  # type: ignore[arg-type]

    assert noted == []
