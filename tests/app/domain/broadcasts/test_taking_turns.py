"""Broadcasts of a workspace take turns, and those that compute for long share a thread with all others of the kind."""

from __future__ import annotations

import pytest

from app.domain.broadcasts import broadcast_batches
from app.domain.broadcasts.broadcasts import MAIL
from app.domain.work import fairness
from app.domain.work.fairness import Turns
from tests.broadcasting import begin, outcomes, people, work
from tests.cast import Api, rung_on
from tests.talks import make_channel


@pytest.fixture(autouse=True)
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """Counts the computing of every contact, in a process that has computed nothing."""
    monkeypatch.setattr(fairness, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(broadcast_batches, "TURNS", Turns())
    return broadcast_batches.TURNS


def begun(api: Api) -> str:
    make_channel(api.workspace_id)
    people(api, 3)
    return begin(api.workspace_id)


def test_one_broadcast_of_a_workspace_is_worked_on_at_a_time(api: Api, others: Api) -> None:
    first, theirs = begun(api), begun(others)
    second, third = (begin(api.workspace_id, name=name) for name in ("Second", "Third"))

    with broadcast_batches._ROOM.thread(api.workspace_id, MAIL, first):
        for each in (second, third, theirs):
            broadcast_batches.work(each)
    assert (outcomes(second), outcomes(third)) == ({}, {})
    assert {*outcomes(theirs).values()} == {"sent"}
    work(second)

    # Each that leaves rings for the next.
    assert {second, third} <= {*rung_on("broadcasts")}
    assert [{*outcomes(each).values()} for each in (second, third)] == [{"sent"}, set()]


def test_a_workspace_that_has_computed_for_long_waits_for_the_thread_of_those(
    api: Api, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    broadcast_id = begun(api)
    monkeypatch.setattr(fairness, "HEAVY_SECONDS", 0.0)
    with turns.of(api.workspace_id):
        pass

    with broadcast_batches.HEAVY.thread(None, MAIL):
        broadcast_batches.work(broadcast_id)
    without = outcomes(broadcast_id)
    work(broadcast_id)

    assert (without, {*outcomes(broadcast_id).values()}) == ({}, {"sent"})


def test_a_batch_ends_where_its_workspace_has_computed_for_long(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    broadcast_id = begun(api)
    monkeypatch.setattr(fairness, "HEAVY_SECONDS", 0.0)
    monkeypatch.setattr(broadcast_batches.mailbox.serving, "SLICE_SECONDS", 0.0)
    reached = []

    for _ in range(4):
        broadcast_batches.work(broadcast_id)
        reached.append(len(outcomes(broadcast_id)))

    # The choice, the first contact, and the others in the thread of those that compute for long.
    assert reached[:3] == [0, 1, 3]
