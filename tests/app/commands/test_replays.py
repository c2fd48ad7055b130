from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from app import logs
from app.commands import main as commands
from app.lib import ids
from app.models.endpoints import Endpoint
from tests.cast import Api, all_of, make_endpoint, one
from tests.sending import make

Run = Callable[..., Result]


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `python -m app replay` with these arguments, in this process."""
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(commands.main, ("replay", *arguments), prog_name="python -m app")

    return run


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return Endpoint.get_by_id(make_endpoint(api.workspace_id, "https://shop.example/hooks")[0])


def test_chosen_deliveries_are_replayed_without_any_worker_and_the_progress_is_shown(
    run: Run, api: Api, endpoint: Endpoint
) -> None:
    made = make(endpoint, 3, last_error_code="timeout")
    make(endpoint, 1, last_error_code="reset")

    done = run(api.workspace_id, "--error-code", "timeout", "--endpoint", endpoint.id)

    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert (shown["state"], shown["count"], shown["sent"], shown["created_by"]) == ("done", 3, 3, None)
    assert done.stderr.splitlines()[-1] == "done: 3 sent, 0 skipped of 3"
    assert all_of("SELECT id FROM deliveries WHERE status = 'pending' ORDER BY id") == made
    assert one("SELECT actor_type FROM audit_entries WHERE action = 'replays.create'") == "command"


def test_a_dry_run_shows_the_preview_and_changes_nothing(run: Run, api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 2, "held")
    make(endpoint, 1, body=False)

    shown = json.loads(run(api.workspace_id, "--status", "failed", "--status", "held", "--dry-run").stdout)

    assert (shown["count"], shown["left_out"]) == (2, {"body_gone": 1})
    assert one("SELECT count(*) FROM replays") == 0


def test_a_canary_is_sent_and_the_command_ends(run: Run, api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 3)

    shown = json.loads(run(api.workspace_id, "--since", "2026-01-01", "--canary").stdout)

    assert (shown["state"], shown["sent"]) == ("canary", 1)


def test_a_limit_is_kept_to_without_any_worker(run: Run, api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 3)

    shown = json.loads(run(api.workspace_id, "--kind", "contact.created", "--per-second", "10").stdout)

    assert (shown["state"], shown["sent"]) == ("done", 3)
    assert one("SELECT extract(epoch FROM max(at) - min(at)) >= 0.1 FROM replay_rows")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give at least one option that chooses deliveries"),
        (("--per-second", "5"), "give at least one option that chooses deliveries"),
        (("--since", "yesterday"), "'yesterday' is no time"),
        (("--error-code", "bad"), "'bad' is not one of"),
        (("--status", "cancelled"), "'cancelled' is not one of"),
    ],
)
def test_what_chooses_nothing_is_refused(run: Run, api: Api, arguments: tuple[str, ...], said: str) -> None:
    done = run(api.workspace_id, *arguments)

    assert done.exit_code != 0
    assert said in done.output
    assert one("SELECT count(*) FROM jobs") == 0


def test_an_unknown_workspace_is_refused(run: Run) -> None:
    done = run(ids.new("ws"), "--status", "failed")

    assert (done.exit_code, "bellhop:" in done.output) == (1, True)
