"""Each process waits for the schema that its code needs, and goes on by itself."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app import migrations
from app.config import settings
from app.database import rows
from app.sql import schema
from tests.cast import until
from tests.stack.ports import free_port
from tests.stack.processes import ROOT, process_types

ASKS = f'"run":"{schema.UPGRADE}"'
# One of each kind of program.
KINDS = ("web", "realtime", "writes", "scheduler")

Start = Callable[..., subprocess.Popen[bytes]]


def release() -> str:
    """The command of the Procfile's `release`."""
    [command] = re.findall("^release: (.+)$", (ROOT / "Procfile").read_text(), re.MULTILINE)
    return str(command)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def start(bare: str, log: Path) -> Iterator[Start]:
    """Starts a process of a type, or the `release`, on an empty database, with these variables in its environment."""
    ports = {name: str(free_port()) for name in ("PORT", "REALTIME_PORT")}
    started: list[subprocess.Popen[bytes]] = []

    def start(kind: str, **variables: str) -> subprocess.Popen[bytes]:
        command = f"exec {process_types().get(kind) or release()}"
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | ports | {"PATH": path, "DATABASE_URL": bare, "METRICS_PORT": "0"} | variables
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, shell=True, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)


def sessions() -> int:
    """How many connections others have to this database."""
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    return int(rows(f"SELECT count(*) FROM pg_stat_activity WHERE {others}")[0][0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_asks_for_the_upgrade_once_and_goes_on_after_it(start: Start, log: Path, kind: str) -> None:
    process = start(kind)
    until(lambda: ASKS in log.read_text(), seconds=60)
    assert process.poll() is None

    migrations.upgrade()

    until(lambda: '"event":"schema.upgraded"' in log.read_text(), seconds=60)
    assert log.read_text().count(ASKS) == 1
    assert process.poll() is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_waits_ends_when_it_is_asked_to(start: Start, log: Path, kind: str) -> None:
    process = start(kind)
    until(lambda: ASKS in log.read_text(), seconds=60)

    process.terminate()

    assert process.wait(timeout=60) == 0
    assert "Traceback" not in log.read_text()


def test_release_upgrades_and_ends(start: Start, log: Path) -> None:
    assert start("release").wait(timeout=60) == 0
    assert migrations.pending() == []
    assert log.read_text().endswith("The database is up to date.\n")


@pytest.mark.parametrize("variable", ["HONCHO_PROCESS_NAME", "FOREMAN_WORKER_NAME"])
def test_where_its_end_would_end_all_release_stays(start: Start, log: Path, variable: str) -> None:
    process = start("release", **{variable: "release.1"})
    until(lambda: "waits now" in log.read_text(), seconds=60)

    until(lambda: sessions() == 0)
    assert migrations.pending() == []
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=60) == 0


@pytest.fixture
def point_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets this process's DATABASE_URL."""

    def point_at(url: str) -> None:
        monkeypatch.setenv("DATABASE_URL", url)
        settings.cache_clear()

    yield point_at
    monkeypatch.undo()
    settings.cache_clear()


def test_a_database_of_the_next_version_is_not_waited_for(bare: str, point_at: Callable[[str], None]) -> None:
    migrations.upgrade()
    rows("INSERT INTO migrations (name) VALUES ('9999_of_the_next_version.sql')")
    point_at(bare)
    before, connected = signal.getsignal(signal.SIGTERM), sessions()

    schema.wait()

    until(lambda: sessions() == connected)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_database_that_is_away_is_not_waited_for_here(point_at: Callable[[str], None]) -> None:
    point_at("postgresql://postgres@127.0.0.1:1/none")

    with capture_logs() as lines:
        schema.wait()

    assert [line["event"] for line in lines] == ["process.starts", "schema.unknown"]
