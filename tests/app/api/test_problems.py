from __future__ import annotations

import peewee
import pytest
from flask import Flask, abort
from flask.testing import FlaskClient
from structlog.testing import capture_logs
from werkzeug.exceptions import TooManyRequests

from app.api import problem_pages, problems, request_ids
from app.errors import (
    BellhopError,
    Conflict,
    Fault,
    IdempotencyKeyReused,
    InsufficientScope,
    Invalid,
    NotFound,
    SettingsError,
    Unauthenticated,
)
from app.problems import PROBLEMS, problem_document, problem_of_error

BASE = "https://bellhop.test"


class AutomationNotPublished(Conflict):
    """A subclass may have a slug of its own."""

    slug = "automation-not-published"


class Taken(Conflict):
    """A subclass without one has that of the class above it."""


class Foreign(Exception):
    """An error of a library that happens to have a slug."""

    slug = "not one of ours"


def kinds_of(error: type[BellhopError]) -> list[type[BellhopError]]:
    return [error, *(kind for below in error.__subclasses__() for kind in kinds_of(below))]


ERRORS = {
    "missing": NotFound(),
    "anonymous": Unauthenticated(),
    "narrow": InsufficientScope("This token lacks 'contacts'."),
    "taken": Conflict("Another contact has this email.", conflicting_contact_id="con_1"),
    "duplicate": Taken("Another sale has this reference."),
    "draft": AutomationNotPublished("The automation is a draft."),
    "reused": IdempotencyKeyReused(),
    "invalid": Invalid(Fault("/email", "Not an email address.")),
    "database": peewee.OperationalError("server closed the connection: SELECT secret"),
    "bug": RuntimeError("password=hunter2"),
    "foreign": Foreign("password=hunter2"),
    "unset": SettingsError("SECRET_KEY is hunter2"),
    "limited": TooManyRequests(retry_after=17),
}


@pytest.fixture
def client() -> FlaskClient:
    app = Flask(__name__)
    request_ids.install(app)
    problems.install(app, BASE)
    app.register_blueprint(problem_pages.blueprint)

    @app.get("/raise/<name>")
    def fail(name: str) -> str:
        raise ERRORS[name]

    @app.get("/said/<int:status>")
    def stop_with_words(status: int) -> str:
        abort(status, "In our own words.")

    @app.get("/abort/<int:status>")
    def stop(status: int) -> str:
        abort(status)

    return app.test_client()


@pytest.mark.parametrize(
    ("name", "status", "slug"),
    [
        ("missing", 404, "not-found"),
        ("anonymous", 401, "unauthenticated"),
        ("narrow", 403, "insufficient-scope"),
        ("taken", 409, "conflict"),
        ("duplicate", 409, "conflict"),
        ("draft", 409, "automation-not-published"),
        ("reused", 422, "idempotency-key-reused"),
        ("invalid", 422, "validation-failed"),
        ("database", 503, "unavailable"),
        ("bug", 500, "internal-error"),
        ("foreign", 500, "internal-error"),
        ("unset", 500, "internal-error"),
        ("limited", 429, "rate-limited"),
    ],
)
def test_every_error_has_its_problem(client: FlaskClient, name: str, status: int, slug: str) -> None:
    response = client.get(f"/raise/{name}")

    assert response.status_code == status
    assert response.mimetype == "application/problem+json"
    document = response.get_json(force=True)
    assert document["type"] == f"{BASE}/problems/{slug}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert document["traceId"] == response.headers["X-Request-Id"]


@pytest.mark.parametrize(
    ("status", "slug"),
    [
        (400, "malformed-request"),
        (401, "unauthenticated"),
        (403, "insufficient-scope"),
        (404, "not-found"),
        (405, "method-not-allowed"),
        (409, "conflict"),
        (413, "payload-too-large"),
        (415, "unsupported-media-type"),
        (422, "validation-failed"),
        (429, "rate-limited"),
        (500, "internal-error"),
        (503, "unavailable"),
    ],
)
def test_what_werkzeug_raises_is_a_problem_too(client: FlaskClient, status: int, slug: str) -> None:
    response = client.get(f"/abort/{status}")

    assert (response.status_code, response.mimetype) == (status, "application/problem+json")
    assert response.get_json(force=True)["type"] == f"{BASE}/problems/{slug}"


def test_what_the_code_says_of_a_refusal_is_its_detail(client: FlaskClient) -> None:
    assert client.get("/said/404").get_json(force=True)["detail"] == "In our own words."


def test_what_the_code_says_of_a_failure_stays_inside(client: FlaskClient) -> None:
    assert "our own words" not in client.get("/said/500").text


def test_a_status_outside_the_table_is_a_blank_problem(client: FlaskClient) -> None:
    document = client.get("/abort/406").get_json(force=True)

    assert (document["type"], document["title"], document["status"]) == ("about:blank", "Not Acceptable", 406)


def test_an_unknown_path_is_a_problem(client: FlaskClient) -> None:
    response = client.get("/nowhere")

    assert response.status_code == 404
    assert response.get_json(force=True)["traceId"] == response.headers["X-Request-Id"]


def test_a_wrong_method_names_the_right_ones(client: FlaskClient) -> None:
    response = client.delete("/raise/bug")

    assert response.status_code == 405
    assert {"GET", "HEAD", "OPTIONS"} <= set(response.headers["Allow"].split(", "))


def test_a_missing_token_is_asked_for(client: FlaskClient) -> None:
    assert client.get("/raise/anonymous").headers["WWW-Authenticate"] == "Bearer"


def test_a_wrong_token_is_called_invalid(client: FlaskClient) -> None:
    response = client.get("/raise/anonymous", headers={"Authorization": "Bearer bhp_wrong"})

    assert response.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'


def test_the_facts_of_a_conflict_are_members_of_its_problem(client: FlaskClient) -> None:
    document = client.get("/raise/taken").get_json(force=True)

    assert document["conflicting_contact_id"] == "con_1"
    assert document["detail"] == "Another contact has this email."


def test_a_validation_problem_points_at_each_fault(client: FlaskClient) -> None:
    document = client.get("/raise/invalid").get_json(force=True)

    assert document["title"] == "Validation failed"
    assert document["errors"] == [{"pointer": "/email", "detail": "Not an email address."}]


def test_an_unavailable_service_says_when_to_retry(client: FlaskClient) -> None:
    response = client.get("/raise/database")

    assert int(response.headers["Retry-After"]) > 0
    assert "SELECT" not in response.text


def test_a_rate_limit_keeps_its_own_retry_after(client: FlaskClient) -> None:
    assert client.get("/raise/limited").headers.getlist("Retry-After") == ["17"]


def test_an_unexpected_error_is_logged_and_shows_nothing(client: FlaskClient) -> None:
    with capture_logs() as lines:
        response = client.get("/raise/bug", headers={"X-Request-Id": "trace-1"})

    assert "hunter2" not in response.text
    assert "RuntimeError" not in response.text
    (line,) = [line for line in lines if line["event"] == "unexpected_error"]
    assert line["request_id"] == "trace-1" == response.get_json(force=True)["traceId"]
    assert line["exc_info"] is ERRORS["bug"]


def test_an_error_of_a_hook_after_the_view_is_a_problem_too(client: FlaskClient) -> None:
    @client.application.after_request
    def fail(response: object) -> object:
        raise RuntimeError("hunter2")

    response = client.get("/problems")

    assert response.status_code == 500
    assert response.get_json(force=True)["traceId"] == response.headers["X-Request-Id"]


def test_a_head_request_gets_the_status_without_a_body(client: FlaskClient) -> None:
    response = client.head("/raise/missing")

    assert (response.status_code, response.data) == (404, b"")


@pytest.mark.parametrize("slug", PROBLEMS)
def test_the_type_of_every_problem_leads_to_a_page(client: FlaskClient, slug: str) -> None:
    response = client.get(f"/problems/{slug}")

    assert response.status_code == 200
    assert response.mimetype == "text/html"
    assert PROBLEMS[slug].title in response.text
    assert slug in response.text


def test_the_pages_load_nothing(client: FlaskClient) -> None:
    response = client.get("/problems/conflict")

    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "<script" not in response.text
    assert "src=" not in response.text


def test_one_page_lists_all_problems(client: FlaskClient) -> None:
    page = client.get("/problems").text

    assert all(f'href="/problems/{slug}"' in page for slug in PROBLEMS)


def test_an_unknown_problem_has_no_page(client: FlaskClient) -> None:
    assert client.get("/problems/no-such").status_code == 404


def test_a_document_without_a_trace_has_no_trace_id() -> None:
    document = problem_document("conflict", "Taken.", base_url=BASE, conflicting_contact_id="con_1", status=200)

    assert document == {
        "type": f"{BASE}/problems/conflict",
        "title": "Conflict",
        "status": 409,
        "detail": "Taken.",
        "conflicting_contact_id": "con_1",
    }


@pytest.mark.parametrize("kind", kinds_of(BellhopError), ids=lambda kind: kind.__name__)
def test_every_class_of_errors_carries_the_slug_of_a_problem(kind: type[BellhopError]) -> None:
    assert kind.slug in PROBLEMS
    assert "slug" in vars(kind) or kind.slug != BellhopError.slug


@pytest.mark.parametrize("name", ["bug", "foreign", "unset"])
def test_a_surprise_in_a_job_is_an_internal_error_that_shows_nothing(name: str) -> None:
    document = problem_of_error(ERRORS[name], "trace-1", base_url=BASE)

    assert document["status"] == 500
    assert document["traceId"] == "trace-1"
    assert "hunter2" not in str(document)
