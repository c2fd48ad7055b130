from __future__ import annotations

import importlib
import pkgutil
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

import app
from app.database import rows
from app.domain.deliveries import lanes
from app.domain.insight import queues
from app.domain.jobs import jobs
from app.mailbox import Mail
from scheduler import signals
from scheduler.signals import Signal
from scheduler.timetable import Timetable
from tests.app.mailbox.boxes import open_mailbox, post

pytestmark = pytest.mark.usefixtures("empty")


def shown(kind: str) -> tuple[float | None, float | None]:
    """How much of the kind waits and for how many seconds, as the metrics have it."""
    names = ("bellhop_waiting_mail", "bellhop_overdue_seconds")
    waiting, oldest = (REGISTRY.get_sample_value(name, {"mail": kind}) for name in names)
    return waiting, oldest


def every_mail() -> set[str]:
    """The tables of all kinds of mail that any module describes."""
    modules = [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(app.domain.__path__, "app.domain.")
    ]
    return {value.table for module in modules for value in vars(module).values() if isinstance(value, Mail)}


def test_every_kind_of_mail_has_signals_and_a_name_on_the_pages() -> None:
    tables = every_mail()

    found = Timetable().signals.all()

    assert len(tables) > 10
    assert {signal.mail.table for signal in found} == tables
    assert {kind for signal in found for kind in signal.mail.kinds} == set(queues.NAMES)
    assert None not in [figure for kind in queues.NAMES for figure in shown(kind)]


def test_a_pass_shows_how_much_waits_and_for_how_long() -> None:
    post(jobs.MAIL, "a", 3, due_in=-100)
    post(lanes.FAST, open_mailbox("b"), 2, due_in=-10)
    timetable = Timetable()

    timetable.run_due()

    assert shown("jobs") == (3, pytest.approx(100, abs=60))
    assert shown("deliveries") == (2, pytest.approx(10, abs=60))
    assert shown("runs") == (0, 0)


def test_where_there_is_no_mail_nothing_is_asked(statements: list[str]) -> None:
    timetable = Timetable()
    timetable.run_due()
    statements.clear()

    assert timetable.signals.count() == 0

    assert statements == []


def test_more_than_one_call_looks_at_is_counted_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "PART", 4)
    signal = Signal(jobs.MAIL)
    post(jobs.MAIL, "a", 10)

    counts = []
    for _ in range(3):
        signal.count_on()
        counts.append(shown("jobs")[0])
    assert counts == [4, 8, 10]

    rows("UPDATE jobs SET due_at = NULL WHERE id IN (SELECT id FROM jobs LIMIT 7)")
    signal.count_on()
    assert shown("jobs")[0] == 3


def test_a_round_that_is_not_over_shows_the_one_before_while_it_has_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "PART", 4)
    signal = Signal(jobs.MAIL)
    post(jobs.MAIL, "a", 6)
    signal.count_on()
    signal.count_on()

    signal.count_on()

    assert shown("jobs")[0] == 6


def test_where_the_last_mail_has_gone_the_count_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "PART", 4)
    signal = Signal(jobs.MAIL)
    post(jobs.MAIL, "a", 6)
    signal.tell_oldest({"jobs": 5.0}, is_part=False)
    signal.count_on()

    signal.rest()
    assert shown("jobs") == (0, 0)

    rows("DELETE FROM jobs")
    post(jobs.MAIL, "a", 2)
    signal.count_on()
    assert shown("jobs")[0] == 2


def test_a_sample_for_the_pages_is_what_the_metrics_show(statements: list[str]) -> None:
    post(jobs.MAIL, "a", 3, due_in=-100)
    timetable = Timetable()
    timetable.run_due()
    statements.clear()

    assert timetable.signals.sample() == 1

    assert len(statements) == 1
    [sample] = queues.samples(timedelta(hours=1))["writes"][-1:]
    assert sample.depth == 3
    assert sample.oldest_seconds >= 100
