"""What listeners have missed is sent in turns, and whole, whatever fails meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

import pytest
from peewee import OperationalError

from app.domain.insight import updates
from app.domain.insight.updates import StreamPosition
from app.domain.people import notifications
from app.live import resumptions, streams
from app.live.listeners import Listener, Pass
from app.live.resumptions import Resumptions
from app.live.streams import Parcel
from app.live.update_reader import Begun, Reader
from tests.cast import Api, until

USAGE = {"meter": "contacts", "used": 81, "percent": 81, "included": 100}


class Ready:
    """A reader that goes on with everybody at once."""

    def join(self, listeners: Sequence[Listener], begun: Begun) -> None:
        begun(updates.present())


class Told:
    """What was sent, in order: to whom, and how many events. Listeners wait for it to begin."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.resumed: list[str] = []
        self.ended: list[str] = []
        self.resumptions = Resumptions(cast(Reader, Ready()), self._deliver, self._end)

    def listener(self, workspace_id: str, place: StreamPosition, name: str = "mem_1") -> Listener:
        made = Listener(Pass(workspace_id, name), lambda _: None, lambda: None)
        self.resumptions.join(made, place)
        return made

    def run_until(self, condition: Any) -> None:
        self.resumptions.start()
        try:
            until(condition)
        finally:
            self.resumptions.stop()

    def _deliver(self, parcels: Sequence[Parcel], resumed: Sequence[Listener]) -> None:
        for parcel in parcels:
            for each in parcel.listeners:
                if number := parcel.data.count(b"event: notification"):
                    self.sent.append((each.admitted.workspace_id, number))
        self.resumed += [each.admitted.workspace_id for each in resumed]

    def _end(self, listeners: Sequence[Listener]) -> None:
        self.ended += [each.admitted.workspace_id for each in listeners]


@pytest.fixture
def place(api: Api, others: Api, monkeypatch: pytest.MonkeyPatch) -> StreamPosition:
    """A place that three updates of one workspace follow, and one of another; each is a page."""
    monkeypatch.setattr(resumptions, "PAGE", 1)
    began = updates.present()
    for number in range(3):
        notifications.note(api.workspace_id, "usage_high", str(number), USAGE)
    notifications.note(others.workspace_id, "usage_high", "x", USAGE)
    return began


def test_workspaces_take_turns(api: Api, others: Api, place: StreamPosition) -> None:
    told = Told()
    for workspace_id in (api.workspace_id, others.workspace_id):
        told.listener(workspace_id, place)
    told.run_until(lambda: len(told.resumed) == 2)

    ours, theirs = (api.workspace_id, 1), (others.workspace_id, 1)
    assert told.sent == [ours, theirs, ours, ours]


def test_only_so_many_workspaces_take_turns_at_once(
    api: Api, others: Api, place: StreamPosition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumptions, "AT_ONCE", 1)
    told = Told()
    for workspace_id in (api.workspace_id, others.workspace_id):
        told.listener(workspace_id, place)
    told.run_until(lambda: len(told.resumed) == 2)

    ours, theirs = (api.workspace_id, 1), (others.workspace_id, 1)
    assert told.sent == [ours, ours, ours, theirs]


def test_those_who_go_on_from_one_place_share_the_work(
    api: Api, place: StreamPosition, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, made = updates.read_missed, []
    monkeypatch.setattr(updates, "read_missed", lambda *given: made.append(1) or read(*given))
    told = Told()
    for name in ("mem_1", "mem_1", "mem_2"):
        told.listener(api.workspace_id, place, name)
    told.run_until(lambda: len(told.resumed) == 3)

    assert (len(made), len(told.sent)) == (1, 9)


def test_nothing_is_lost_or_sent_twice_when_the_database_is_away(
    api: Api, place: StreamPosition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumptions, "PAUSE_SECONDS", 0.01)
    calls = threading.local()
    for module, name in ((updates, "read_missed"), (streams, "parcels")):
        monkeypatch.setattr(module, name, failing_every_other_time(getattr(module, name), calls, name))
    told = Told()
    told.listener(api.workspace_id, place)
    told.run_until(lambda: told.resumed)

    assert told.sent == [(api.workspace_id, 1)] * 3


def failing_every_other_time(work: Any, calls: Any, name: str) -> Any:
    def call(*given: Any) -> Any:
        number = getattr(calls, name, 0)
        setattr(calls, name, number + 1)
        if number % 2 == 0:
            raise OperationalError("away")
        return work(*given)

    return call


def test_a_mistake_of_ours_ends_the_stream_and_no_other(
    api: Api, others: Api, place: StreamPosition, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = updates.read_missed

    def read_theirs(place: StreamPosition, until: StreamPosition, workspace_id: str, *more: Any) -> Any:
        if workspace_id == api.workspace_id:
            raise ValueError("a mistake")
        return read(place, until, workspace_id, *more)

    monkeypatch.setattr(updates, "read_missed", read_theirs)
    told = Told()
    for workspace_id in (api.workspace_id, others.workspace_id):
        told.listener(workspace_id, place)
    told.run_until(lambda: told.resumed)

    assert (told.ended, told.resumed) == ([api.workspace_id], [others.workspace_id])


def test_who_has_left_is_sent_nothing(api: Api, others: Api, place: StreamPosition) -> None:
    told = Told()
    told.resumptions.leave(told.listener(api.workspace_id, place))
    told.listener(others.workspace_id, place)
    told.run_until(lambda: told.resumed)

    assert told.sent == [(others.workspace_id, 1)]
