"""Retention of runs: they go when they have been over for long, have been billed, and their log is gone."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from app import partitions
from app.database import now, rows
from app.domain.automations import run_history
from app.domain.billing import usage
from app.lib import ids
from app.partitions import Piece
from tests.cast import Api, all_of, in_threads, one
from tests.talks import make_run

DAY = timedelta(days=1)


@pytest.fixture
def workspace_id(api: Api, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(partitions, "existing", lambda each: [])
    usage.count_up()
    rows("UPDATE usage_progress SET counted_until = now() + interval '1 day'")
    return api.workspace_id


def end(workspace_id: str, days_ago: float) -> str:
    """A run that ended then."""
    return make_run(workspace_id, "con_1", status="completed", finished_at=now() - days_ago * DAY)


def test_runs_go_when_they_have_been_over_for_as_long_as_history_is_kept(workspace_id: str) -> None:
    end(workspace_id, 90.1)
    kept = [end(workspace_id, 89.9), end(workspace_id, 0), make_run(workspace_id, "con_1", created_at="2020-01-01Z")]

    assert run_history.forget_old() == 1

    assert all_of("SELECT id FROM runs ORDER BY id") == sorted(kept)


def test_they_go_in_batches_the_oldest_first(workspace_id: str) -> None:
    kept, *_ = [end(workspace_id, 91 + number) for number in range(3)]

    assert run_history.forget_old(limit=2) == 2

    assert all_of("SELECT id FROM runs") == [kept]


def test_concurrent_passes_delete_each_once(workspace_id: str) -> None:
    for number in range(30):
        end(workspace_id, 91 + number)

    assert sum(in_threads([partial(run_history.forget_old, 10)] * 3)) == 30


def test_a_run_stays_until_its_log_is_gone(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    end(workspace_id, 100)
    for begins, deleted in ((101, 0), (99, 1)):
        low = ids.bound("stp", now() - begins * DAY)
        monkeypatch.setattr(partitions, "existing", lambda each, low=low: [Piece("run_steps_old", low, low)])
        assert run_history.forget_old() == deleted


def test_a_run_stays_until_it_is_billed(workspace_id: str) -> None:
    end(workspace_id, 100)
    rows("UPDATE usage_progress SET counted_until = now() - interval '1 minute' WHERE meter = 'runs'")
    assert run_history.forget_old() == 0

    rows("DELETE FROM usage_progress")
    assert run_history.forget_old() == 0


def test_that_a_contact_has_entered_an_automation_is_not_forgotten(workspace_id: str) -> None:
    end(workspace_id, 100)
    rows("INSERT INTO enrolments VALUES ('con_1/aut_1', %s, 'con_1', 'aut_1', 'run_1', 0)", (workspace_id,))

    assert run_history.forget_old() == 1

    assert one("SELECT count(*) FROM enrolments") == 1
