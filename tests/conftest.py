"""The servers and settings of the tests: a real PostgreSQL and Redis for each pytest process that needs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import structlog
from flask import Flask
from flask.testing import FlaskClient

from app import bells, create_app, database, migrations
from app.config import settings
from tests import cast
from tests.cast import Api
from tests.stack.certificates import Certificates
from tests.stack.postgres import Postgres
from tests.stack.redis import Redis
from tests.stack.stack import FOREIGN

# Nothing here outlives the run, so nothing has to reach the disk.
HASTY = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "shared_buffers": "64MB"}
TEMPLATE = "migrated"

Keys = Callable[..., None]


@dataclass(frozen=True)
class Servers:
    postgres: Postgres
    redis: Redis
    certificates: Certificates
    database_url: str

    def new_database(self, name: str, template: str = "template0") -> str:
        """The address of another database of that name; from TEMPLATE it is a migrated one."""
        return self.postgres.create_database(name, template)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """PostgreSQL with a migrated database, and Redis; the settings of this process point to them."""
    # Not pytest's own temporary directories: it removes those of the last run but two, also while that still runs.
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
        WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8",
        WEBHOOK_CA_FILE=str(certificates.ca_file),
        WEBHOOK_TIMEOUT_SECONDS="2",
    )
    settings.cache_clear()
    database.connect_to(postgres.create_database(TEMPLATE))
    migrations.upgrade()
    database.database.close()
    postgres.create_database("tests", TEMPLATE)
    yield Servers(postgres, redis, certificates, postgres.database_url("tests"))
    database.database.close()
    redis.stop()
    postgres.stop()


@pytest.fixture(scope="session")
def app(servers: Servers) -> Flask:
    """The whole HTTP side. Loggers are not kept, so that each test can listen to them."""
    made = create_app()
    structlog.configure(cache_logger_on_first_use=False)
    return made


@pytest.fixture(scope="session")
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def _empty() -> None:
    # DELETE and not TRUNCATE: for a handful of rows it is ten times as fast, and waits for nobody's lock.
    database.rows(";".join(f"DELETE FROM {table}" for table in cast.tables()))
    bells.flush()
    bells.flags().flushdb()


@pytest.fixture
def empty(app: Flask) -> None:
    """The database and Redis without anything that an earlier test left."""
    _empty()


@pytest.fixture(scope="module")
def empty_for_module(app: Flask) -> None:
    """The same once, for a module whose tests only read, or are refused."""
    _empty()


@pytest.fixture
def api(empty: None, client: FlaskClient) -> Api:
    """A caller who may do everything in a workspace of its own."""
    return cast.found(client, "Ours")


@pytest.fixture
def others(empty: None, client: FlaskClient) -> Api:
    """The same in another workspace."""
    return cast.found(client, "Theirs")


@pytest.fixture
def keys(empty: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Keys]:
    """Sets the keys of SECRET_KEY, newest first, as a restart with others does."""

    def keys(*newest_first: str) -> None:
        monkeypatch.setenv("SECRET_KEY", ",".join(newest_first))
        settings.cache_clear()

    yield keys
    monkeypatch.undo()
    settings.cache_clear()
