"""Who gets a stream, how it is kept, and how it ends."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest
from flask import Flask

from app import bells
from app.database import rows
from app.domain.people import notifications
from app.live import http, hub
from app.models.members import Member
from tests import pages
from tests.app.live.conftest import Listen, Running, cookie
from tests.bounding import set_bound
from tests.cast import Api, until
from tests.listening import Ear

USAGE = {"meter": "contacts", "used": 81, "percent": 81, "included": 100}


def note(api: Api, once: str) -> None:
    notifications.note(api.workspace_id, "usage_high", once, USAGE)


def test_a_stream_is_one_of_events_that_proxies_pass_on_at_once(api: Api, listen: Listen) -> None:
    ear = listen(api)

    assert ear.head["content-type"] == "text/event-stream; charset=utf-8"
    assert ear.head["x-accel-buffering"] == "no"
    assert ear.head["cache-control"] == "no-store"
    assert b"retry: " in ear.raw


def test_a_stranger_gets_no_stream(api: Api, realtime: Running) -> None:
    for headers in ({}, {"Cookie": "__Host-bellhop=forged"}, {"Cookie": "bellhop=eyJfdXNlcl9pZCI6ICJ4In0.x.x"}):
        refused = Ear(realtime.port, headers=headers).open()
        assert (refused.status, refused.body()["title"]) == (401, "Authentication required")


def test_a_member_gets_the_stream_of_the_workspace_that_is_named(
    app: Flask, api: Api, others: Api, realtime: Running
) -> None:
    headers = {"Cookie": cookie(pages.member(app, api.workspace_id))}

    named = Ear(realtime.port, f"/live/workspace?workspace={api.workspace_id}", headers).open()
    foreign = Ear(realtime.port, f"/live/workspace?workspace={others.workspace_id}", headers).open()

    assert (named.status, foreign.status) == (200, 404)


def test_support_staff_listen_during_a_visit_only(app: Flask, api: Api, realtime: Running) -> None:
    supporter = pages.supporter(app, api.workspace_id)
    path, headers = f"/live/workspace?workspace={api.workspace_id}", {"Cookie": cookie(supporter)}

    assert Ear(realtime.port, path, headers).open().status == 404
    supporter.visit()
    assert Ear(realtime.port, path, {"Cookie": cookie(supporter)}).open().status == 200


@pytest.fixture
def checked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "CHECKED_EVERY_SECONDS", 0.05)


def test_a_stream_ends_when_the_membership_does(checked_often: None, app: Flask, api: Api, realtime: Running) -> None:
    person = pages.member(app, api.workspace_id)
    ear = Ear(realtime.port, headers={"Cookie": cookie(person)}).open().until_placed()

    Member.delete().where(Member.account_id == person.account_id).execute()

    until(lambda: ear.listen().is_over)


def test_a_stream_of_somebody_who_may_listen_goes_on(checked_often: None, api: Api, listen: Listen) -> None:
    ear = listen(api)
    rows("UPDATE sessions SET seen_at = now() - interval '2 minutes'")
    for number in range(5):
        note(api, str(number))
        ear.until(lambda heard, number=number: len(heard) == number + 1)

    # Listening is no use of the session.
    assert rows("SELECT 1 FROM sessions WHERE seen_at > now() - interval '1 minute'") == []


@pytest.fixture
def commented_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "COMMENT_SECONDS", 0.05)


def test_a_quiet_stream_has_comments_with_the_place_it_has_reached(
    commented_often: None, api: Api, others: Api, listen: Listen
) -> None:
    ear = listen(api)
    began = ear.place
    ear.until(lambda _: b": still here" in ear.raw)
    note(others, "elsewhere")

    ear.until(lambda _: ear.place != began)
    assert ear.heard == []


def test_a_listener_that_does_not_read_is_cut_off_and_delays_nobody(
    monkeypatch: pytest.MonkeyPatch, app: Flask, api: Api, realtime: Running, listen: Listen
) -> None:
    set_bound(monkeypatch, "LIVE_BUFFER", 10_000)
    ear, headers = listen(api), {"Cookie": cookie(pages.member(app, api.workspace_id, email="lazy@shop.example"))}
    lazy = Ear(realtime.port, headers=headers).open().until_placed()
    assert lazy._socket is not None
    lazy._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)

    number = 0
    while len(realtime.server.hub._streams) == 2:
        with_text = {**USAGE, "meter": "x" * 100_000}
        notifications.note(api.workspace_id, "usage_high", str(number), with_text)
        number += 1
        ear.until(lambda heard, number=number: len(heard) == number)

    assert number < 1_000


def test_streams_outlive_a_redis_that_loses_everything(api: Api, listen: Listen) -> None:
    ear = listen(api)
    bells.flags().flushall()
    note(api, "behind")

    ear.until(lambda heard: len(heard) == 1)


def test_streams_outlive_connections_to_the_database(api: Api, listen: Listen) -> None:
    ear = listen(api)
    rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    for number in range(3):
        note(api, str(number))

    ear.until(lambda heard: len(heard) == 3)


def test_what_is_no_request_is_refused(realtime: Running) -> None:
    for sent, status in (
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"404"),
        (b"GET / HTTP/1.0\r\n\r\n", b"404"),
        (b"POST /live/workspace HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET //[ HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"GET /live/workspace?" + b"a=1&" * 100 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.0\r\nHost: a\r\nhost: a\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n", b"431"),
    ):
        with socket.create_connection(("127.0.0.1", realtime.port), 20) as connection:
            connection.sendall(sent)
            assert connection.recv(1_000).split(b" ")[1] == status


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"200"),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n", b"200"),
        (b"CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example:443\r\n\r\n", b"405"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    ],
)
def test_another_protocol_gets_a_plain_answer(
    realtime: Running, caplog: pytest.LogCaptureFixture, sent: bytes, status: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", realtime.port), 20) as connection:
        connection.sendall(sent)
        assert connection.recv(1_000).split(b" ")[1] == status

    assert Ear(realtime.port, "/healthz").open().status == 200
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_request_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch, realtime: Running) -> None:
    monkeypatch.setattr(http, "HEAD_SECONDS", 0.05)
    with socket.create_connection(("127.0.0.1", realtime.port), 20) as connection:
        connection.sendall(b"GET / HT")
        with suppress(ConnectionResetError):
            assert connection.recv(1_000) == b""


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_answered(realtime: Running, path: str) -> None:
    assert Ear(realtime.port, path).open().status == 200
