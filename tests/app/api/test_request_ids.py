from __future__ import annotations

import re

import pytest
import structlog
from flask import Flask
from flask.testing import FlaskClient
from structlog.testing import capture_logs

from app import forwarding, process_registry
from app.api import problems, request_ids
from app.logs import tracing
from tests.spans import Kept

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
SEEN: list[dict[str, object]] = []


@pytest.fixture
def client() -> FlaskClient:
    app = Flask(__name__)
    request_ids.install(app)
    problems.install(app, "https://bellhop.test")

    @app.get("/things/<name>")
    def show(name: str) -> str:
        SEEN.append(structlog.contextvars.get_contextvars())
        return request_ids.request_id()

    @app.get("/broken")
    def fail() -> str:
        raise RuntimeError

    return app.test_client()


def test_what_proxies_say_of_most_requests_is_told(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_registry, "_facts", {})
    monkeypatch.setattr(forwarding, "_numbers", [])

    for header in ["203.0.113.7, 10.0.0.1"] * 15 + [""] * 5:
        client.get("/things/1", headers={"X-Forwarded-For": header} if header else {})

    assert process_registry._facts == {"forwarded": 2}


@pytest.mark.parametrize("given", ["a", "A.b_c-9", "x" * 128])
def test_a_callers_identifier_is_kept(client: FlaskClient, given: str) -> None:
    response = client.get("/things/1", headers={"X-Request-Id": given})

    assert response.headers["X-Request-Id"] == given == response.text


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a/b", "ä", "a,b", "<script>"])
def test_an_unfit_identifier_is_replaced(client: FlaskClient, given: str) -> None:
    response = client.get("/things/1", headers={"X-Request-Id": given})

    assert response.headers["X-Request-Id"] != given
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", response.headers["X-Request-Id"])


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Kept:
    return Kept(monkeypatch)


def test_without_tracing_a_callers_trace_means_nothing(client: FlaskClient) -> None:
    assert client.get("/things/1", headers=PARENT).headers["X-Request-Id"] != TRACE


@pytest.mark.parametrize("unfit", [{}, {"X-Request-Id": "a b"}])
def test_a_callers_trace_names_a_request_without_an_identifier(
    client: FlaskClient, spans: Kept, unfit: dict[str, str]
) -> None:
    response = client.get("/things/1", headers={**PARENT, **unfit})

    [span] = spans.added
    assert response.headers["X-Request-Id"] == TRACE == span.trace_id
    assert (span.name, span.kind, span.parent_id) == ("GET /things/<name>", "SERVER", 0x00F067AA0BA902B7)
    assert (span.attributes["http.response.status_code"], span.error, span.linked) == (200, None, None)


def test_a_callers_identifier_counts_before_its_trace_which_is_linked(client: FlaskClient, spans: Kept) -> None:
    response = client.get("/things/1", headers={**PARENT, "X-Request-Id": "mine"})

    [span] = spans.added
    assert response.headers["X-Request-Id"] == "mine" == span.attributes["bellhop.request.id"]
    assert (span.trace_id, span.parent_id) == (tracing.trace_of("mine"), None)
    assert span.linked == (TRACE, 0x00F067AA0BA902B7)


def test_a_request_that_breaks_is_an_error_and_one_that_is_refused_is_none(client: FlaskClient, spans: Kept) -> None:
    client.get("/broken")
    client.get("/nowhere")

    assert [(span.name, span.error) for span in spans.added] == [("GET /broken", "500"), ("GET", None)]


def test_every_request_without_an_identifier_gets_another(client: FlaskClient) -> None:
    first, second = client.get("/things/1"), client.get("/things/1")

    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/broken", 500),
        ("GET", "/nowhere", 404),
        ("PUT", "/things/1", 405),
        ("HEAD", "/things/1", 200),
        ("OPTIONS", "/things/1", 200),
    ],
)
def test_every_response_carries_one_identifier(client: FlaskClient, method: str, path: str, status: int) -> None:
    response = client.open(path, method=method, headers={"X-Request-Id": "mine"})

    assert response.status_code == status
    assert response.headers.getlist("X-Request-Id") == ["mine"]


def test_what_is_logged_meanwhile_carries_the_identifier_and_nothing_does_afterwards(client: FlaskClient) -> None:
    SEEN.clear()

    client.get("/things/1", headers={"X-Request-Id": "mine"})

    assert SEEN == [{"request_id": "mine"}]
    assert structlog.contextvars.get_contextvars() == {}


def test_the_access_log_has_one_line_with_the_route_and_nothing_personal(client: FlaskClient) -> None:
    with capture_logs() as lines:
        client.get("/things/ada@example.com?email=ada@example.com", headers={"Authorization": "Bearer bhp_secret"})

    (line,) = lines
    assert line["duration_ms"] >= 0
    assert {name: line[name] for name in ("event", "log_level", "method", "route", "status")} == {
        "event": "request",
        "log_level": "info",
        "method": "GET",
        "route": "/things/<name>",
        "status": 200,
    }
    assert "ada@" not in str(line)
    assert "secret" not in str(line)


def test_the_access_log_does_not_repeat_an_unknown_path(client: FlaskClient) -> None:
    with capture_logs() as lines:
        client.get("/ada@example.com")

    assert [(line["route"], line["status"]) for line in lines] == [(None, 404)]
