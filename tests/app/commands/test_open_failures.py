"""Failed jobs on the command line: counted by cause, and replayed or discarded without any worker."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from app import logs
from app.commands import main as commands
from tests.app.domain.jobs.test_failed_jobs import fail
from tests.cast import Api, accept, one

Run = Callable[..., Result]


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `python -m app failures` for the workspace with these arguments, in this process."""
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(commands.main, ("failures", api.workspace_id, *arguments), prog_name="python -m app")

    return run


def test_they_are_counted_by_cause_and_nothing_changes(run: Run, api: Api) -> None:
    fail(api, 3)
    fail(api, 1, "contacts.delete", "peewee.DataError")

    shown = json.loads(run().stdout)

    assert (shown["count"], shown["replayable"]) == (4, 4)
    assert [(each["kind"], each["exception"], each["count"]) for each in shown["causes"]] == [
        ("contacts.upsert", "RuntimeError", 3),
        ("contacts.delete", "peewee.DataError", 1),
    ]
    assert json.loads(run("--exception", "none").stdout)["count"] == 0
    assert one("SELECT count(*) FROM jobs WHERE kind LIKE 'jobs.%%'") == 0


def test_a_cause_is_replayed_or_discarded_once(run: Run, api: Api) -> None:
    fail(api, 3)
    fail(api, 2, "contacts.delete")

    assert json.loads(run("--kind", "contacts.upsert", "--replay").stdout) == {"count": 3, "done": 3}
    assert one("SELECT count(*) FROM contacts") == 3
    assert json.loads(run("--problem", "internal-error", "--discard", " Known. ").stdout) == {"count": 2, "done": 2}
    assert one("SELECT DISTINCT discard_reason FROM jobs WHERE discarded_at IS NOT NULL") == "Known."
    assert json.loads(run("--discard", "Known.").stdout) == {"count": 0, "done": 0}
    assert one("SELECT count(*) FROM audit_entries WHERE actor_type = 'command' AND action LIKE 'jobs.%%many'") == 2


@pytest.mark.parametrize(
    "wrong", [("--replay", "--discard", "x"), ("--discard", " "), ("--discard", "x" * 501), ("--kind", "x")]
)
def test_what_makes_no_sense_is_refused(run: Run, api: Api, wrong: tuple[str, ...]) -> None:
    fail(api, 1)

    assert run(*wrong).exit_code == 2
    assert one("SELECT count(*) FROM jobs WHERE kind LIKE 'jobs.%%'") == 0


def test_a_second_one_is_refused_while_the_first_is_under_way(run: Run, api: Api) -> None:
    until = fail(api, 2)[-1]
    accept(api.workspace_id, "jobs.discard_many", {"filter": {}, "until": until, "reason": "x"}, api.workspace_id)

    done = run("--discard", "Known.")

    assert (done.exit_code, "already" in done.output) == (1, True)
