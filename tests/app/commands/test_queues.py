"""The command that shows what waits in each queue."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import redis
from click.testing import CliRunner, Result

from app import logs, process_registry
from app.commands import main as commands
from app.database import rows
from app.domain import mails
from app.domain.insight import queues
from app.models.endpoints import Endpoint
from tests.cast import Api, accept, make_endpoint
from tests.sending import make
from tests.stack.processes import ROOT

Run = Callable[..., Result]


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `python -m app queues` with these arguments, in this process."""
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(commands.main, ("queues", *arguments), prog_name="python -m app")

    return run


def shown(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    return {each["queue"]: each for each in json.loads(done.stdout)["queues"]}


def test_every_kind_of_mail_is_shown_with_what_serves_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_registry, "processes", lambda: 2 * [process_registry.Process("writes", "one", 1)])

    queues = shown(run())

    assert queues["writes"] == {
        **{"queue": "writes", "due": 0, "claimed": 0, "suspect": 0, "later": 0, "oldest": 0.0},
        **{"served_by": "writes", "running": 2},
    }
    assert queues["runs"]["running"] == 0


def test_what_is_due_claimed_left_and_waits_is_counted(run: Run, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint.get_by_id(make_endpoint(api.workspace_id, "https://shop.example/hooks")[0])
    first, second, third, fourth = make(endpoint, 4, "pending")
    rows("UPDATE deliveries SET due_at = now() - interval '90 seconds' WHERE id = %s", (first,))
    rows("UPDATE deliveries SET leased_until = now() + interval '1 minute' WHERE id = %s", (second,))
    rows("UPDATE deliveries SET leased_until = now() - interval '1 minute' WHERE id = %s", (third,))
    rows("UPDATE deliveries SET due_at = NULL, next_attempt_at = now() + interval '1 day' WHERE id = %s", (fourth,))

    found = shown(run())["deliveries"]

    assert (found["due"], found["claimed"], found["suspect"], found["later"]) == (3, 1, 1, 1)
    assert found["oldest"] >= 90


def test_the_oldest_is_looked_for_in_all_mailboxes(run: Run, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MOST_MAILBOXES", 1)
    for number in range(3):
        make(Endpoint.get_by_id(make_endpoint(api.workspace_id, f"https://{number}.example/")[0]), 1, "pending")
    rows(
        "UPDATE deliveries SET due_at = now() - interval '90 seconds'"
        " WHERE endpoint_id = (SELECT max(endpoint_id) FROM deliveries)"
    )

    assert shown(run())["deliveries"]["oldest"] >= 90


def test_counting_ends(run: Run, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MOST_COUNTED", 2)
    for _ in range(5):
        accept(api.workspace_id, "contacts.upsert", {"email": "ada@example.com"})

    assert shown(run())["writes"]["due"] == 3


def test_without_redis_it_is_not_known_who_runs(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise redis.ConnectionError("Connection refused.")

    monkeypatch.setattr(process_registry, "processes", away)

    done = run()

    assert shown(done)["writes"]["running"] is None
    assert "as Redis does not respond: Connection refused." in done.stderr


@pytest.mark.parametrize(("mail", "process_type"), [(kind.mail, kind.served_by) for kind in mails.MAIL_KINDS])
def test_a_queue_is_of_the_process_that_serves_it(mail: Any, process_type: str) -> None:
    module = (ROOT / "workers" / f"{process_type.replace('-', '_')}.py").read_text()

    assert f"`{mail.queue}`" in module.split('"""')[1]


def test_every_table_of_mail_is_in_it() -> None:
    leased = rows(
        """
        SELECT DISTINCT attrelid::regclass::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE attname = 'leased_until' AND relkind IN ('r', 'p') AND NOT relispartition
        """
    )

    assert {kind.mail.table for kind in mails.MAIL_KINDS} == {table for (table,) in leased}
