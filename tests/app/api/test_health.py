from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest
from flask.testing import FlaskClient
from psycopg2 import errors

from app import database
from app.bells import brokers
from app.config import settings
from app.database import room
from app.domain.insight import readiness
from app.lib import versions
from tests.cast import Api, accept, one, out_of_room
from tests.conftest import Servers


@pytest.fixture
def redis_away(servers: Servers) -> Iterator[None]:
    servers.redis.kill()
    yield
    servers.redis.start()


@pytest.fixture
def database_away(app: object) -> Iterator[None]:
    database.database.close()
    database.connect_to("postgresql://postgres@127.0.0.1:1/none")
    yield
    database.connect_to(settings().database_url)


def test_a_process_that_answers_is_alive(client: FlaskClient) -> None:
    answer = client.get("/healthz")

    assert (answer.status_code, answer.json) == (200, {"status": "alive", "version": versions.running()})


def test_a_process_with_database_and_broker_is_ready(client: FlaskClient) -> None:
    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert answer.json == {"status": "ready", "answering": {"database": True, "broker": True}}


def test_without_redis_a_process_is_not_ready(client: FlaskClient, redis_away: None) -> None:
    answer = client.get("/readyz")

    assert (answer.status_code, answer.json["answering"]) == (503, {"database": True, "broker": False})


def test_with_a_full_redis_a_process_is_not_ready_and_accepts_writes(api: Api, redis_full: None) -> None:
    ready, written = api.client.get("/readyz"), api.post("contacts", {"email": "ada@example.com"})

    assert (ready.status_code, ready.json["answering"]) == (503, {"database": True, "broker": False})
    assert written.status_code == 202


@pytest.fixture
def rabbitmq_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(brokers, "settings", lambda: replace(settings(), broker_url="amqp://guest:guest@127.0.0.1:1/"))
    brokers.sending_broker.cache_clear()
    yield
    brokers.sending_broker.cache_clear()


def test_without_rabbitmq_a_process_that_uses_it_is_not_ready(client: FlaskClient, rabbitmq_away: None) -> None:
    answer = client.get("/readyz")

    assert (answer.status_code, answer.json["answering"]) == (503, {"database": True, "broker": False})


def test_a_process_that_is_not_ready_responds_with_a_problem(client: FlaskClient, redis_away: None) -> None:
    answer = client.get("/readyz")

    assert answer.mimetype == "application/problem+json"
    assert answer.json["type"] == "https://bellhop.test/problems/unavailable"
    assert (answer.json["status"], answer.json["detail"]) == (503, "No response from the broker.")
    assert answer.json["traceId"] == answer.headers["X-Request-Id"]
    assert int(answer.headers["Retry-After"]) > 0


def test_without_a_database_a_process_is_alive_and_not_ready(client: FlaskClient, database_away: None) -> None:
    answer = client.get("/readyz")

    assert (answer.status_code, answer.json["answering"]) == (503, {"database": False, "broker": True})
    assert client.get("/healthz").status_code == 200


@pytest.fixture
def looking_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "KNOWN_FOR_SECONDS", -1.0)
    monkeypatch.setattr(readiness, "_seen", readiness._seen)


def fill_disk() -> None:
    """PostgreSQL has no room for what this thread's connection asks it next: that ends the connection."""
    database.rows("SELECT set_config('temp_file_limit', '0', false)")


def test_a_process_whose_database_has_no_room_is_not_ready(
    client: FlaskClient, looking_each_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk()
    without_writes = client.get("/readyz")
    monkeypatch.setattr(errors, "DiskFull", errors.ConfigurationLimitExceeded)  # what that limit is refused with
    fill_disk()
    without_room = client.get("/readyz")

    assert (without_writes.status_code, without_room.status_code) == (503, 503)
    assert without_writes.json["detail"] == "PostgreSQL takes no writes."
    assert without_room.json["detail"] == "PostgreSQL's disk is full."
    assert without_room.json["answering"] == {"database": True, "broker": True}


def test_a_process_that_cannot_write_files_is_not_ready(
    client: FlaskClient, looking_each_time: None, nowhere_for_files: Path
) -> None:
    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json["detail"] == "No file can be written under MEDIA_DIR: Not a directory."


def test_many_who_ask_make_one_look(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "KNOWN_FOR_SECONDS", 60.0)
    monkeypatch.setattr(readiness, "_seen", (time.monotonic() - 61, []))
    client.get("/readyz")
    looks: list[str] = []
    monkeypatch.setattr(room, "check", lambda: looks.append("look"))

    assert [client.get("/readyz").status_code for _ in range(5)] == [200] * 5
    assert looks == []


def test_writes_are_accepted_at_once_without_redis(api: Api, redis_away: None) -> None:
    answer = api.post("contacts", {"email": "ada@example.com"})

    assert answer.status_code == 202
    assert api.done(answer)["status"] == "succeeded"


def test_without_a_database_a_response_says_when_to_retry(api: Api, database_away: None) -> None:
    answer = api.get("contacts")

    assert (answer.status_code, answer.mimetype) == (503, "application/problem+json")
    assert answer.get_json(force=True)["type"] == "https://bellhop.test/problems/unavailable"
    assert answer.get_json(force=True)["traceId"] == answer.headers["X-Request-Id"]
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    "sqlstate",
    ["53100", "53200", "53300", "40P01", "57014"],
    ids=["disk", "memory", "connections", "deadlock", "cancelled"],
)
def test_the_response_to_a_write_that_the_database_gives_up_says_when_to_retry(api: Api, sqlstate: str) -> None:
    with out_of_room("jobs", sqlstate):
        answer = api.post("contacts", {"email": "ada@example.com"})

    assert (answer.status_code, answer.mimetype) == (503, "application/problem+json")
    assert answer.get_json(force=True)["type"] == "https://bellhop.test/problems/unavailable"
    assert int(answer.headers["Retry-After"]) > 0
    assert one("SELECT count(*) FROM jobs") == 0
    assert api.done(api.post("contacts", {"email": "ada@example.com"}))["status"] == "succeeded"


def test_a_connection_that_the_server_has_closed_is_replaced(api: Api) -> None:
    assert api.get("contacts").status_code == 200
    database.rows("SELECT 1")
    [(own,)] = database.rows("SELECT pg_backend_pid()")
    end_backend(own)
    time.sleep(0.2)  # one that was used a moment ago is not looked at

    assert api.get("contacts").status_code == 200


@pytest.fixture
def lost(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has closed this thread's connection, and it is not looked at before it is used."""
    monkeypatch.setattr(database, "_IDLE_SECONDS", 3600)
    end_backend(one("SELECT pg_backend_pid()"))


def test_what_is_read_on_a_connection_that_was_just_closed_is_read_on_another(api: Api, lost: None) -> None:
    assert api.get("contacts").status_code == 200


def test_so_is_a_read_with_a_setting_of_its_own(lost: None) -> None:
    assert one("\n SET LOCAL enable_sort = off;\n SELECT 1") == 1


def test_what_is_written_on_one_is_not_written_again(api: Api, lost: None) -> None:
    with pytest.raises(database.DatabaseAway):
        accept(api.workspace_id, "contacts.upsert", {"external_id": "one"})

    assert one("SELECT count(*) FROM jobs") == 0


def test_nothing_is_read_again_within_a_transaction(api: Api) -> None:
    def read_on_a_lost_connection() -> None:
        with database.transaction():
            end_backend(one("SELECT pg_backend_pid()"))
            database.rows("SELECT 1")

    with pytest.raises(database.DatabaseAway):
        read_on_a_lost_connection()

    assert one("SELECT 1") == 1


def end_backend(pid: int) -> None:
    """Ends another connection of ours as the server would when it restarts."""
    connection = psycopg2.connect(settings().database_url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    connection.close()
