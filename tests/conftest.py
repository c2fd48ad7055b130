"""The servers and settings of the tests: a real PostgreSQL and Redis for each pytest process that needs them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import structlog
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis

from app import bells, create_app, database, migrations, partitions
from app.config import settings
from app.domain.insight import figures
from app.domain.people import rate_limits
from app.lib import ids, vitals
from app.mailbox import marks
from tests import cast
from tests.cast import Api
from tests.mail_server import MailServer
from tests.stack.certificates import Certificates
from tests.stack.postgres import Postgres
from tests.stack.redis import Redis
from tests.stack.stack import FOREIGN

# Threads of the application outlive the servers of the tests: one that dies of that must not end pytest.
vitals.end = lambda **_: None

cast.set_slices(cast.LONG_SLICE_SECONDS)

# No data outlives the run, so none has to reach the disk.
HASTY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "64MB"}
# How long Redis may take on a busy machine; with shorter timeouts, bells and counts would be lost and tests fail.
REDIS_SECONDS = 3.0
FIGURE = "figure"

# The same examples in every run, on a machine of any speed.
hypothesis.register_profile(
    "same", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
# Others in every run, and many: pytest --hypothesis-profile=many
hypothesis.register_profile("many", parent=hypothesis.get_profile("same"), derandomize=False, max_examples=4_000)
hypothesis.load_profile("same")

Keys = Callable[..., None]
ROOT = Path(__file__).parents[1]
RECENT_COMMITS = 200


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the tests first whose files, or the files that they test, were changed last: these are likeliest to fail."""
    places = {path: place for place, path in enumerate(dict.fromkeys(_changed_last()))}

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(ROOT)
        tested = path.relative_to("tests").with_name(path.name.removeprefix("test_"))
        return min(places.get(str(each), len(places)) for each in (path, tested))

    items.sort(key=place)


def _changed_last() -> list[str]:
    """The files that were changed, the last first; none outside of a clone."""
    if not (ROOT / ".git").exists():
        return []
    asked = (["diff", "--name-only", "HEAD"], ["log", "--format=", "--name-only", f"-{RECENT_COMMITS}"])
    return [
        path
        for words in asked
        for path in subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    ]


@dataclass(frozen=True)
class Servers:
    postgres: Postgres
    redis: Redis
    certificates: Certificates
    database_url: str

    def new_database(self, name: str, template: str = "template0") -> str:
        """Creates a database of that name, empty or as the template is, and returns its address."""
        return self.postgres.create_database(name, template)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """PostgreSQL with a migrated database, and Redis; the settings of this process point at them."""
    # Not a directory of pytest's: it removes those of older runs, even while they are in use.
    with TemporaryDirectory(prefix="bellhop-tests-", ignore_cleanup_errors=True) as directory:
        yield from _serve(Path(directory))


def _serve(directory: Path) -> Iterator[Servers]:
    postgres = Postgres(directory / "postgres", settings=HASTY)
    redis = Redis(directory / "redis")
    certificates = Certificates(directory / "certificates")
    postgres.start()
    redis.start()
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ.update(
        REDIS_URL=redis.url,
        DATABASE_URL=postgres.database_url("tests"),
        SECRET_KEY="tests-" * 8,
        BASE_URL="https://bellhop.test",
        MEDIA_DIR=str(directory / "media"),
        WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8",
        WEBHOOK_CA_FILE=str(certificates.ca_file),
        WEBHOOK_TIMEOUT_SECONDS="2",
    )
    settings.cache_clear()
    bells.brokers._QUICK.update(socket_timeout=REDIS_SECONDS, socket_connect_timeout=REDIS_SECONDS)
    database.connect_to(postgres.create_database("tests"))
    migrations.upgrade()
    _make_emptying()
    yield Servers(postgres, redis, certificates, postgres.database_url("tests"))
    database.database.close()
    redis.stop()
    postgres.stop()


@pytest.fixture
def redis_full(servers: Servers) -> Iterator[None]:
    """Redis refuses all writes."""
    servers.redis.limit(1)
    yield
    servers.redis.limit(0)


@pytest.fixture(scope="session")
def app(servers: Servers) -> Flask:
    """The whole application. Loggers are not cached, so that tests can capture them."""
    made = create_app()
    structlog.configure(cache_logger_on_first_use=False)
    return made


@pytest.fixture(scope="session")
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def _make_emptying() -> None:
    """Makes the function `empty_all`, which deletes the rows of the tables that have any.

    A function, because its plans are kept: most tests write to few tables, and planning is most of the work. DELETE,
    not TRUNCATE: for a handful of rows it is ten times as fast, and does not wait for locks.
    """
    emptying = "".join(
        f"IF EXISTS (SELECT FROM {table}) THEN DELETE FROM {table}; END IF;\n" for table in cast.tables()
    )
    database.rows(
        f"CREATE FUNCTION empty_all() RETURNS void LANGUAGE plpgsql SET enable_seqscan = on AS $$BEGIN {emptying} END$$"
    )


def _empty() -> None:
    database.rows("SELECT empty_all()")
    marks.of.cache_clear()  # tests make mail that has been due for long, for owners of the same name
    clear_redis()


def clear_redis() -> None:
    """Empties Redis, and forgets the requests that were counted there."""
    bells.flush(20)
    bells.flags().flushdb()
    rate_limits._limiter.cache_clear()  # it would not ask a Redis for a while that a test before took away


@pytest.fixture
def empty(app: Flask) -> None:
    """Empties the database and Redis."""
    _empty()


@pytest.fixture(scope="module")
def empty_for_module(app: Flask) -> None:
    """The same, once for a module whose tests change nothing."""
    _empty()


@pytest.fixture
def bare(servers: Servers) -> Iterator[str]:
    """The address of an empty database, which this process uses during the test."""
    url = servers.new_database(ids.new("bare"))
    database.connect_to(url)
    yield url
    database.database.close()
    database.connect_to(settings().database_url)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests with concurrent passes: on a busy machine all might time out, and none do the work."""
    monkeypatch.setattr(partitions, "_LOCK_TIMEOUT", "20s")
    monkeypatch.setattr(partitions, "_STATEMENT_TIMEOUT", "20s")


@pytest.fixture
def one_day() -> None:
    """Keeps the test within one day and month: just before midnight it waits for the next day."""
    left = 86_400 - time.time() % 86_400
    if left < 30:
        time.sleep(left + 0.1)


@pytest.fixture
def no_autovacuum(empty: None) -> Iterator[None]:
    """Turns autovacuum off, so that the server's counters show only the test's own reads."""
    _set_autovacuum("off")
    yield
    _set_autovacuum("DEFAULT")


def _set_autovacuum(value: str) -> None:
    database.rows(f"ALTER SYSTEM SET autovacuum = {value}")
    database.rows("SELECT pg_reload_conf()")


@pytest.fixture
def api(empty: None, client: FlaskClient) -> Api:
    """An unrestricted caller of a workspace of its own."""
    return cast.found(client, "Ours")


@pytest.fixture
def others(empty: None, client: FlaskClient) -> Api:
    """An unrestricted caller of another workspace."""
    return cast.found(client, "Theirs")


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that the database has been sent, in a list that grows."""
    sent: list[str] = []
    execute = database.database.execute_sql
    monkeypatch.setattr(
        database.database, "execute_sql", lambda sql, params=None: (sent.append(str(sql)), execute(sql, params))[1]
    )
    return sent


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The tables that statements read from end to end from now on, each with the statement."""
    seen: list[tuple[str, str]] = []
    real = database.Database._execute

    def scans(node: dict[str, Any]) -> Iterator[str]:
        if node["Node Type"] == "Seq Scan":
            yield node["Relation Name"]
        for below in node.get("Plans", ()):
            yield from scans(below)

    def execute(self: Any, sql: Any, parameters: Any) -> Any:
        result = real(self, sql, parameters)
        if str(sql).split()[0] in ("SELECT", "WITH", "UPDATE", "DELETE", "INSERT", "EXECUTE"):
            [(plan,)] = real(self, f"EXPLAIN (FORMAT JSON) {sql}", parameters).fetchall()
            seen.extend((table, str(sql)) for table in scans(plan[0]["Plan"]))
        return result

    monkeypatch.setattr(database.Database, "_execute", execute)
    return seen


@pytest.fixture
def keys(empty: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keys]:
    """Sets the keys of SECRET_KEY, newest first, as a restart would."""

    def keys(*newest_first: str) -> None:
        monkeypatch.setenv("SECRET_KEY", ",".join(newest_first))
        settings.cache_clear()

    yield keys
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def nowhere_for_files(empty: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A MEDIA_DIR that nobody, root included, can write."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("MEDIA_DIR", str(tmp_path / "file" / "media"))
    settings.cache_clear()
    yield tmp_path / "file" / "media"
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def mail_server(empty: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    """The server that SMTP_URL names."""
    found = MailServer()
    monkeypatch.setenv("SMTP_URL", found.url())
    settings.cache_clear()
    yield found
    found.stop()
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def without_lag(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are counted up to this moment."""
    monkeypatch.setattr(figures, "LAG_SECONDS", 0.0)


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Callable[[object], None]:
    """Shows a figure of the test at the end of the run."""
    # Properties of a test also reach the process that writes the summary, if another one ran the test.
    return lambda figure: request.node.user_properties.append((FIGURE, str(figure)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints what tests gave to `report`."""
    ended = [each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, ())]
    lines = [
        f"{each.nodeid.rpartition('::')[2]:90} {value}"
        for each in ended
        for name, value in getattr(each, "user_properties", ())
        if name == FIGURE and each.when == "call"
    ]
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.line(line)
