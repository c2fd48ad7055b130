"""The commands for arrivals that were given up."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from app import logs
from app.commands import main as commands
from app.database import rows
from app.domain.channels import arrivals
from app.models.channels import Channel
from tests.arriving import make_post, received
from tests.cast import Api, all_of, one


@pytest.fixture
def channel(api: Api, monkeypatch: pytest.MonkeyPatch) -> Channel:
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)
    made = make_post(api.workspace_id)
    arrivals.store(made, [received("Private", "1"), received("Private", "2", "eve"), received("Fine", "3")])
    rows("UPDATE arrivals SET problem = 'KeyError', errors = 5, due_at = NULL WHERE key < '3'")
    return made


def run(*arguments: str) -> Result:
    return CliRunner().invoke(commands.main, ["arrivals", *arguments], prog_name="python -m app")


def test_what_was_given_up_is_listed_without_what_it_says(channel: Channel) -> None:
    first, second = json.loads(run("list").output)["arrivals"]

    assert first["id"] == one("SELECT id FROM arrivals WHERE key = '1'")
    assert (first["channel_id"], first["problem"], first["errors"]) == (channel.id, "KeyError", 5)
    assert "Private" not in run("list").output
    assert json.loads(run("list", "--after", first["id"]).output)["arrivals"] == [second]
    assert json.loads(run("list", "--limit", "1").output)["arrivals"] == [first]


def test_one_is_retried(channel: Channel) -> None:
    given_up = one("SELECT id FROM arrivals WHERE key = '1'")

    assert json.loads(run("retry", given_up).output) == {"retried": 1}
    assert all_of("SELECT key FROM arrivals WHERE due_at IS NOT NULL ORDER BY key") == ["1", "3"]
    again = run("retry", given_up)
    assert again.exit_code == 1
    assert "No such arrival was given up." in str(again.exception) + again.output


def test_all_are_retried_some_at_a_time(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "RETRIED", 1)

    assert json.loads(run("retry", "--all").output) == {"retried": 2}
    assert json.loads(run("retry", "--all").output) == {"retried": 0}


@pytest.mark.parametrize("arguments", [(), ("arr_1", "--all")])
def test_it_takes_an_identifier_or_all(channel: Channel, arguments: tuple[str, ...]) -> None:
    assert run("retry", *arguments).exit_code == 2
