from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from psycopg2 import errors

from app import bells, database, forwarding, migrations, process_registry
from app.config import settings
from app.domain.channels import media
from app.domain.insight import checks
from app.domain.insight.checks import Result
from app.errors import SettingsError
from app.lib import clock, json, versions
from app.outbound import own_address
from tests.conftest import Servers
from tests.mail_server import MailServer

pytestmark = pytest.mark.usefixtures("empty")


def test_a_check_that_finds_all_well_says_what_it_found() -> None:
    result = checks.look("migrations")

    assert result == Result("migrations", True, "up to date")
    assert checks.look("settings").is_good


def test_a_check_that_fails_says_why() -> None:
    assert checks.look("writes") == Result(
        "writes", False, "none reported in the last 15 seconds; start one as the Procfile says"
    )
    bells.flags().set("process:writes:host:1", json.dumps({"version": versions.running()}))
    assert checks.look("writes") == Result("writes", True, "1 running")


def test_processes_of_another_version_are_counted_apart() -> None:
    for pid, version in enumerate([versions.running(), "0.0.8", "0.0.9", "0.0.9"]):
        bells.flags().set(f"process:writes:host:{pid}", json.dumps({"version": version}))

    assert checks.look("writes") == Result("writes", True, "4 running, 1 of them 0.0.8, 2 of them 0.0.9")


def test_a_check_of_a_server_that_is_away_is_a_result_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bells, "flags", lambda: bells.brokers.quick_client("redis://127.0.0.1:1/0"))

    result = checks.look("redis")

    assert not result.is_good
    assert "\n" not in result.text


def test_a_full_redis_is_told_to_get_more_room(redis_full: None) -> None:
    results = {result.name: result for result in checks.look_at_all()}

    assert results["redis"].text.startswith("full: raise its maxmemory")
    assert not results["redis"].is_good
    assert results["writes"] == Result("writes", False, "not known without Redis")


def test_a_redis_that_evicts_keys_is_told_not_to(servers: Servers) -> None:
    servers.redis.limit(100_000_000, "allkeys-lru")
    try:
        unwell = checks.look("eviction")
    finally:
        servers.redis.limit(0)

    assert not unwell.is_good
    assert "maxmemory-policy is allkeys-lru" in unwell.text
    assert checks.look("eviction").is_good


def test_a_broker_on_another_redis_is_checked_too(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    configured = replace(settings(), broker_url="redis://127.0.0.1:1/0")
    monkeypatch.setattr(bells, "settings", lambda: configured)
    monkeypatch.setattr(bells.brokers, "settings", lambda: configured)
    bells.brokers.sending_broker.cache_clear()
    try:
        assert not checks.look("redis").is_good
    finally:
        bells.brokers.sending_broker.cache_clear()


def test_a_pooler_that_does_not_make_the_settings_of_sessions_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "settings", lambda: replace(settings(), database_pooling="transaction"))
    database.database.close()
    database.connect()
    try:
        unwell = checks.look("database")
        for name, value in database.SESSION.items():
            database.rows(f"SET {name} TO '{value}'")
        well = checks.look("database")
    finally:
        monkeypatch.undo()
        database.database.close()
        database.connect()

    assert not unwell.is_good
    assert "connect_query='SET timezone TO ''UTC''; SET statement_timeout TO ''30s''" in unwell.text
    assert well.is_good


def test_a_postgresql_without_room_is_told_to_get_some(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.look("database").is_good
    monkeypatch.setattr(errors, "DiskFull", errors.ConfigurationLimitExceeded)
    database.rows("SELECT set_config('temp_file_limit', '0', false)")
    try:
        unwell = checks.look("database")
    finally:
        database.database.discard()

    assert not unwell.is_good
    assert unwell.text.startswith("PostgreSQL's disk is full, so writes get 503: ")
    assert "\n" not in unwell.text


def test_a_clock_that_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = clock.now() + timedelta(minutes=10)
    monkeypatch.setattr(checks.clock, "now", lambda: ahead)

    result = checks.look("database")

    assert not result.is_good
    assert re.match(r"the clocks of this machine and of PostgreSQL are (59\d|600) s apart", result.text)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_without_unicode_is_refused_before_the_first_migration(
    servers: Servers, bare: str, encoding: str
) -> None:
    name = f"bare_{encoding.lower()}"
    database.rows(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    database.connect_to(bare.rpartition("/")[0] + f"/{name}")

    with pytest.raises(SettingsError, match=f"the encoding of the database is {encoding}"):
        migrations.upgrade()

    assert database.rows("SELECT to_regclass('migrations')") == [(None,)]
    assert not checks.look("database").is_good


def test_a_misspelt_setting_is_told_with_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.look("names").is_good
    monkeypatch.setenv("STMP_URL", "smtp://127.0.0.1")
    monkeypatch.setenv("REDIS_TLS_URL", "of somebody else")

    assert checks.look("names") == Result("names", False, "there is no setting STMP_URL: is it SMTP_URL?")


def test_the_server_for_mail_is_asked(mail_server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.look("mail").is_good

    mail_server.stop()

    result = checks.look("mail")
    assert not result.is_good
    assert result.text.startswith("nothing can be sent to SMTP_URL: ")


@pytest.mark.parametrize(
    ("base", "port", "proxies", "is_good"),
    [
        ("https://bellhop.example", 8000, 1, True),
        ("http://bellhop.example", 8000, 1, False),
        ("http://127.0.0.1:8000", 8000, 0, True),
        ("http://localhost:8000", 8000, 0, True),
        ("http://127.0.0.1:9000", 8000, 0, False),
        ("http://127.0.0.1:9000", 8000, 1, True),
    ],
)
def test_the_address_of_the_service_is_safe_and_leads_to_web(
    monkeypatch: pytest.MonkeyPatch, base: str, port: int, proxies: int, is_good: bool
) -> None:
    configured = replace(settings(), base_url=base, port=port, trusted_proxies=proxies)
    monkeypatch.setattr(checks, "settings", lambda: configured)

    assert checks.look("proxy").is_good is is_good


@pytest.mark.parametrize(
    ("status", "headers", "body", "cause"),
    [
        (200, {}, b'{"status":"alive","version":"1"}', None),
        (200, {}, b"<h1>Welcome to nginx!</h1>", "/healthz is answered by something else than Bellhop"),
        (502, {}, b"Bad Gateway", "/healthz is answered with 502"),
        (
            301,
            {"Location": "https://www.shop.example/"},
            b"",
            "/healthz is redirected to https://www.shop.example/: give",
        ),
    ],
)
def test_the_service_is_asked_at_its_address(
    monkeypatch: pytest.MonkeyPatch, status: int, headers: dict[str, str], body: bytes, cause: str | None
) -> None:
    with _answering(status, headers, body) as (port, asked):
        monkeypatch.setattr(own_address, "settings", lambda: replace(settings(), base_url=f"http://127.0.0.1:{port}"))
        result = checks.look("address")

    assert (result.is_good, asked) == (cause is None, ["/healthz"])
    assert cause is None or cause in result.text


def test_an_address_that_leads_nowhere_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with _answering(200, {}, b"") as (port, _):
        pass
    configured = replace(settings(), base_url=f"http://127.0.0.1:{port}")
    monkeypatch.setattr(own_address, "settings", lambda: configured)
    monkeypatch.setattr(checks, "settings", lambda: configured)

    said = f"BASE_URL (http://127.0.0.1:{port}) does not lead to web from here: [Errno 111] Connection refused"
    assert checks.look("address") == Result("address", False, said)


@contextmanager
def _answering(status: int, headers: dict[str, str], body: bytes) -> Iterator[tuple[int, list[str]]]:
    """A server that answers so: its port, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, asked
        server.shutdown()


def test_where_files_cannot_be_written_the_directory_is_named(nowhere_for_files: Path) -> None:
    result = checks.look("files")

    assert result == Result("files", False, f"MEDIA_DIR ({nowhere_for_files}) cannot be written: Not a directory")


def test_nothing_stays_of_the_file_that_a_check_writes() -> None:
    before = {path for path in settings().media_dir.rglob("*") if path.is_file()}

    assert checks.look("files").is_good
    assert {path for path in settings().media_dir.rglob("*") if path.is_file()} == before


def test_machines_that_keep_files_in_directories_of_their_own_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_registry, "_facts", {})
    media.tell_mark()
    process_registry._say("web", {})
    bells.flags().set("process:writes:old:1", json.dumps({"facts": {}}))
    assert checks.look("sharing") == Result("sharing", True, "no process keeps files elsewhere")

    bells.flags().set("process:web:b:1", json.dumps({"facts": {"files": "another"}}))
    result = checks.look("sharing")

    assert not result.is_good
    assert result.text.startswith(f"MEDIA_DIR ({settings().media_dir.absolute()}) is another directory on b: mount one")


def test_the_directory_of_files_is_known_by_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = []
    for name in ("a", "a", "b"):
        configured = replace(settings(), media_dir=tmp_path / name)
        monkeypatch.setattr(media, "settings", partial(lambda given: given, configured))
        marks.append(media.mark())

    assert marks[0] == marks[1] != marks[2]
    assert (tmp_path / "a" / media.MARK).stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("host", "proxies", "is_good"),
    [("127.0.0.1", 0, True), ("::1", 0, True), ("0.0.0.0", 1, True), ("0.0.0.0", 0, False), ("::", 0, False)],
)
def test_a_service_that_strangers_reach_needs_a_proxy(
    monkeypatch: pytest.MonkeyPatch, host: str, proxies: int, is_good: bool
) -> None:
    configured = replace(settings(), listen_host=host, trusted_proxies=proxies)
    monkeypatch.setattr(checks, "settings", lambda: configured)

    result = checks.look("proxy")

    assert result.is_good is is_good
    assert f"LISTEN_HOST is {host}" in result.text


@pytest.mark.parametrize(
    ("proxies", "headers", "is_good"),
    [
        (0, ["203.0.113.7"], False),
        (0, [""], True),
        (0, ["203.0.113.7", "", ""], True),
        (1, ["203.0.113.7"], True),
        (1, ["198.51.100.1, 203.0.113.7"], True),
        (1, [""], True),
        (2, ["203.0.113.7"], False),
    ],
)
def test_a_proxy_that_trusted_proxies_does_not_count_is_told(
    monkeypatch: pytest.MonkeyPatch, proxies: int, headers: list[str], is_good: bool
) -> None:
    configured = replace(settings(), trusted_proxies=proxies)
    monkeypatch.setattr(checks, "settings", lambda: configured)
    monkeypatch.setattr(process_registry, "_facts", {})
    monkeypatch.setattr(forwarding, "_numbers", [])
    for number in range(forwarding.LOOKED_AT):
        assert checks.look("forwarded").text == "no process has had enough requests yet to tell"
        forwarding.note(headers[number % len(headers)])
    process_registry._say("web", {})

    result = checks.look("forwarded")

    assert result.is_good is is_good
    assert f"TRUSTED_PROXIES is {proxies}" in result.text


def test_all_checks_are_made_and_redis_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [result.name for result in checks.look_at_all()] == list(checks.CHECKS)
    asked: list[str] = []

    def away() -> Any:
        asked.append("redis")
        return bells.brokers.quick_client("redis://127.0.0.1:1/0")

    monkeypatch.setattr(bells, "flags", away)

    results = {result.name: result for result in checks.look_at_all()}

    assert asked == ["redis"]
    assert results["database"].is_good
    assert results["writes"] == Result("writes", False, "not known without Redis")


def test_a_check_of_a_database_without_tables_is_a_result_too(servers: Servers, bare: str) -> None:
    assert [checks.look(name).is_good for name in ("database", "migrations", "secrets", "jobs")] == [
        True,
        False,
        False,
        False,
    ]
    assert database.rows("SELECT 1") == [(1,)]
