"""Reads from a replica: a real one, which follows the server of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg2
import pytest
from structlog.testing import capture_logs

from app.config import settings
from app.database import database, replica, rows, transaction
from app.domain.insight import checks
from tests.cast import until
from tests.conftest import Servers
from tests.stack.standby import Standby


@pytest.fixture(scope="module")
def standby(servers: Servers) -> Iterator[Standby]:
    with TemporaryDirectory(prefix="bellhop-tests-", ignore_cleanup_errors=True) as directory:
        standby = Standby(Path(directory) / "standby", servers.postgres)
        standby.start()
        yield standby
        standby.stop()


@pytest.fixture
def following(standby: Standby, empty: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standby]:
    """The replica, which this process knows. Commits wait for the disk, as they do outside of tests."""
    monkeypatch.setattr(replica, "PATIENCE_SECONDS", 20)  # a busy machine may be slow
    lead_to(standby.database_url("tests"), monkeypatch)
    rows("SET synchronous_commit TO on")
    yield standby
    rows("RESET synchronous_commit")
    forget()


def lead_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_REPLICA_URL", url)
    forget()


def forget() -> None:
    if replica._replica.cache_info().currsize and (known := replica._replica()):
        known.close()
    replica._replica.cache_clear()
    replica._rests_until = 0.0
    settings.cache_clear()


@replica.may_read
def whence() -> bool:
    """Whether the replica answers."""
    return bool(rows("SELECT pg_is_in_recovery()")[0][0])


@replica.may_read
def names() -> list[str]:
    """The names of the workspaces; an error if the primary answers."""
    assert whence()
    return [name for (name,) in rows("SELECT name FROM workspaces ORDER BY id")]


def control(server: Standby, statement: str) -> None:
    connection = psycopg2.connect(server.database_url("tests"))
    connection.autocommit = True
    connection.cursor().execute(statement)
    connection.close()


def insert(name: str) -> None:
    rows("INSERT INTO workspaces (id, name) VALUES (%s, %s)", (f"ws_{name}", name))


def test_the_replica_answers_what_may_ask_it(following: Standby) -> None:
    assert whence()
    assert not rows("SELECT pg_is_in_recovery()")[0][0]


def test_a_read_finds_every_write_before_it(following: Standby) -> None:
    for number in range(10, 60):
        insert(f"shop-{number}")
        assert names()[-1] == f"shop-{number}"


def test_the_primary_answers_within_a_transaction(following: Standby) -> None:
    with transaction():
        insert("own")
        assert not whence()


def test_the_primary_answers_while_the_replica_is_behind(following: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "PATIENCE_SECONDS", 0.25)
    control(following, "SELECT pg_wal_replay_pause()")
    try:
        insert("late")
        with capture_logs() as logs:
            assert not whence()
            assert not whence()
        assert [(each["event"], each["outcome"]) for each in logs] == [("replica.left_alone", "behind")]
    finally:
        control(following, "SELECT pg_wal_replay_resume()")
    monkeypatch.setattr(replica, "_rests_until", 0.0)
    monkeypatch.setattr(replica, "PATIENCE_SECONDS", 20)
    assert names() == ["late"]


def test_the_primary_answers_while_the_replica_is_down(following: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    assert whence()
    following.stop()
    try:
        with capture_logs() as logs:
            assert not whence()
        assert [each["outcome"] for each in logs] == ["away"]
        monkeypatch.setattr(replica, "_rests_until", 0.0)
        assert not whence()
    finally:
        following.start()

    monkeypatch.setattr(replica, "_rests_until", 0.0)
    assert whence()


def test_a_read_that_the_replica_cancels_is_answered_by_the_primary(following: Standby) -> None:
    answers: list[bool] = []

    @replica.may_read
    def slow() -> None:
        answers.append(whence())
        if answers[-1]:
            rows("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(5)")

    slow()

    assert answers == [True, False]


def test_an_error_of_the_read_itself_is_raised(following: Standby) -> None:
    @replica.may_read
    def wrong() -> None:
        raise KeyError("wrong")

    with pytest.raises(KeyError):
        wrong()
    assert not rows("SELECT pg_is_in_recovery()")[0][0]


def test_check_says_how_far_behind_the_replica_is(following: Standby) -> None:
    until(lambda: checks.look("replica").text == "0.0 s behind")


def test_check_says_that_there_is_none(following: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_REPLICA_URL")
    forget()

    assert checks.look("replica").text == "none"
    assert not whence()


def test_a_server_that_is_no_replica_is_not_asked(
    servers: Servers, following: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead_to(servers.database_url, monkeypatch)

    assert checks.look("replica").text == "DATABASE_REPLICA_URL leads to a server that is no replica"
    with capture_logs() as logs:
        assert not whence()
    assert [each["outcome"] for each in logs] == ["none"]
    assert database.connection()
