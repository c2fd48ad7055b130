from __future__ import annotations

from flask.testing import FlaskClient

from app.api.responses import JsonResponse, respond


def test_flask_leaves_a_response_the_class_it_has(client: FlaskClient) -> None:
    with client.application.test_request_context():
        assert type(client.application.make_response(respond(200, {}))) is JsonResponse


def test_only_an_answer_with_a_body_has_a_type(client: FlaskClient) -> None:
    assert client.get("/healthz").content_type == "application/json"
    assert client.options("/api/v1/auth/me").content_type is None
