from __future__ import annotations

import io
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from marshmallow import fields, validate

from app.api import openapi, parsing, problems, request_ids
from app.api.openapi.problems import response_name
from app.api.parsing.blueprints import Blueprint
from app.errors import MAX_FAULTS
from app.lib.schemas import Query, RequestBody

BASE = "https://bellhop.test"


class Address(RequestBody):
    city = fields.String(required=True)


class Contact(RequestBody):
    name = fields.String(required=True)
    tags = fields.List(fields.String())
    addresses = fields.List(fields.Nested(Address))
    custom_fields = fields.Dict(fields.String(validate=validate.Length(max=20)), fields.Integer(strict=True))


class Page(Query):
    limit = fields.Integer(load_default=50, validate=validate.Range(1, 100))
    tag = fields.String()
    status = fields.List(fields.String())


class Options(RequestBody):
    release_held = fields.Boolean(load_default=False)


@pytest.fixture
def client() -> FlaskClient:
    blueprint = Blueprint("contacts", __name__, url_prefix="/api/v1")

    @blueprint.route("/contacts", methods=["GET"])
    @blueprint.arguments(Page)
    def list_contacts(page: dict[str, Any]) -> dict[str, Any]:
        return {"data": page}

    @blueprint.route("/contacts", methods=["POST"])
    @blueprint.arguments(Contact)
    @blueprint.alt_response(409, response_name(409))
    def upsert_contact(contact: dict[str, Any]) -> dict[str, Any]:
        return {"data": contact}

    @blueprint.route("/contacts/<name>/enable", methods=["POST"])
    @blueprint.arguments(Options, required=False)
    def enable(options: dict[str, Any], name: str) -> dict[str, Any]:
        return {"data": options, "name": name}

    @blueprint.route("/contacts/<name>/publish", methods=["POST"])
    def publish(name: str) -> dict[str, Any]:
        return {"data": name}

    app = Flask(__name__)
    request_ids.install(app)
    problems.install(app, BASE)
    parsing.install(app)
    openapi.install(app, BASE).register_blueprint(blueprint)
    return app.test_client()


def pointers(response: Any) -> list[str]:
    assert response.status_code == 422, response.text
    assert response.mimetype == "application/problem+json"
    return [error["pointer"] for error in response.get_json(force=True)["errors"]]


def post(client: FlaskClient, body: str | bytes, content_type: str | None = "application/json") -> Any:
    return client.post("/api/v1/contacts", data=body, content_type=content_type)


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=UTF-8", "application/x+json"])
def test_a_json_body_reaches_the_view(client: FlaskClient, content_type: str) -> None:
    response = post(client, '{"name": "Zoë"}', content_type)

    assert (response.status_code, response.json) == (200, {"data": {"name": "Zoë"}})


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_body_of_another_type_is_refused(client: FlaskClient, content_type: str | None) -> None:
    assert post(client, '{"name": "a"}', content_type).status_code == 415


def test_a_compressed_body_is_refused(client: FlaskClient) -> None:
    response = client.post(
        "/api/v1/contacts",
        data=b"\x1f\x8b\x08",
        content_type="application/json",
        headers={"Content-Encoding": "gzip"},
    )

    assert response.status_code == 415


@pytest.mark.parametrize(
    "body",
    [b"{", b'{"name": NaN}', b'{"name": "\xff"}', b'{"name": "a"}}', b"\xef\xbb\xbf{}", b"[" * 100_000, b'{"a":' * 900],
    ids=["cut short", "NaN", "not UTF-8", "more after the end", "byte order mark", "deep list", "deep object"],
)
def test_broken_json_is_malformed(client: FlaskClient, body: bytes) -> None:
    response = post(client, body)

    assert response.status_code == 400
    assert response.get_json(force=True)["type"] == f"{BASE}/problems/malformed-request"


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "a", "name": "b"}',
        '{"name": "a", "n\\u0061me": "a"}',
        '{"name": "a", "custom_fields": {"x": 1, "x": 1}}',
        '{"name": "a", "addresses": [{"city": "x"}, {"city": "y", "city": "y"}]}',
        '[{"a": 1, "a": 1}]',
    ],
)
def test_a_key_that_an_object_has_twice_is_malformed(client: FlaskClient, body: str) -> None:
    response = post(client, body)

    assert response.status_code == 400
    assert "is there twice" in response.get_json(force=True)["detail"]


def test_a_key_that_different_objects_have_is_fine(client: FlaskClient) -> None:
    body = '{"name": "a:b", "addresses": [{"city": "x"}, {"city": "name: y"}], "custom_fields": {"name": 1, "a:b": 2}}'

    assert post(client, body).status_code == 200


@pytest.mark.parametrize("error", [OSError("reset"), ValueError("closed"), Exception("a chunk that is none")])
def test_a_body_that_breaks_on_its_way_is_malformed(client: FlaskClient, error: Exception) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise error

        def readinto(self, buffer: Any) -> int:
            raise error

    response = client.post(
        "/api/v1/contacts",
        content_type="application/json",
        input_stream=Broken(),
        environ_overrides={"wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
    )

    assert response.status_code == 400
    assert response.get_json(force=True)["type"] == f"{BASE}/problems/malformed-request"


def test_well_formed_json_that_is_nested_too_deep_is_malformed(client: FlaskClient) -> None:
    assert post(client, '{"name":' + "[" * 200 + "]" * 200 + "}").status_code == 400


@pytest.mark.parametrize("body", ["[]", '"a"', "1", "null"])
def test_json_that_is_no_object_is_invalid_as_a_whole(client: FlaskClient, body: str) -> None:
    assert pointers(post(client, body)) == [""]


def test_a_missing_body_is_invalid_as_a_whole(client: FlaskClient) -> None:
    assert pointers(client.post("/api/v1/contacts")) == [""]


def test_an_optional_body_may_be_missing(client: FlaskClient) -> None:
    response = client.post("/api/v1/contacts/a/enable")

    assert response.json == {"data": {"release_held": False}, "name": "a"}


def test_an_optional_body_is_read_where_there_is_one(client: FlaskClient) -> None:
    response = client.post("/api/v1/contacts/a/enable", json={"release_held": True})

    assert response.json == {"data": {"release_held": True}, "name": "a"}


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_an_action_without_arguments_takes_an_empty_body(client: FlaskClient, body: bytes) -> None:
    response = client.post("/api/v1/contacts/a/publish", data=body, content_type="application/json")

    assert response.status_code == 200


def test_an_action_without_arguments_refuses_fields(client: FlaskClient) -> None:
    assert pointers(client.post("/api/v1/contacts/a/publish", json={"x": 1})) == ["/x"]


def test_an_action_without_arguments_refuses_a_query(client: FlaskClient) -> None:
    assert pointers(client.post("/api/v1/contacts/a/publish?x=1")) == ["/x"]


def test_each_fault_is_pointed_at(client: FlaskClient) -> None:
    body = (
        '{"tags": ["a", 1], "addresses": [{"city": "x"}, {"town": "y"}],'
        ' "custom_fields": {"a/b~c": "x", "much too long for a key": 1}, "x/y": 1}'
    )

    assert set(pointers(post(client, body))) == {
        "/name",
        "/tags/1",
        "/addresses/1/city",
        "/addresses/1/town",
        "/custom_fields/a~1b~0c",
        "/custom_fields/much too long for a key",
        "/x~1y",
    }


def test_the_list_of_faults_has_an_end(client: FlaskClient) -> None:
    body = "{" + ",".join(f'"f{number}": 1' for number in range(1000)) + "}"

    answer = post(client, body)

    assert len(pointers(answer)) == MAX_FAULTS
    assert answer.get_json(force=True)["detail"] == "name: Missing data for required field … and 1000 more faults"


@pytest.mark.parametrize("bad", [r"\u0000", r"\ud800", r"\udc00x", r"\udbff\ud800"])
def test_text_that_cannot_be_stored_is_pointed_at(client: FlaskClient, bad: str) -> None:
    body = f'{{"name": "a", "tags": ["fine", "x{bad}"]}}'

    assert pointers(post(client, body)) == ["/tags/1"]


def test_a_key_that_cannot_be_stored_is_pointed_at_by_its_object(client: FlaskClient) -> None:
    assert pointers(post(client, r'{"name": "a", "custom_fields": {"a\u0000": 1}}')) == ["/custom_fields"]


@pytest.mark.parametrize("fine", [r"\ud83d\ude00", r"\\u0000", r"\\ud800"])
def test_text_that_only_looks_bad_is_accepted(client: FlaskClient, fine: str) -> None:
    assert post(client, f'{{"name": "{fine}"}}').status_code == 200


def test_a_body_of_exactly_256_kib_is_accepted(client: FlaskClient) -> None:
    assert post(client, b'{"name":"%s"}' % (b"a" * (256 * 1024 - 11))).status_code == 200


def test_a_larger_body_is_refused(client: FlaskClient) -> None:
    assert post(client, b'{"name":"%s"}' % (b"a" * (256 * 1024 - 10))).status_code == 413


@pytest.mark.parametrize("surplus", [1, 2, 1_000_000])
def test_a_chunked_body_that_grows_too_large_is_refused(client: FlaskClient, surplus: int) -> None:
    response = client.post(
        "/api/v1/contacts",
        content_type="application/json",
        input_stream=io.BytesIO(b'{"name":"a"}' + b" " * (256 * 1024 - 12 + surplus)),
        environ_overrides={"wsgi.input_terminated": True, "CONTENT_LENGTH": ""},
    )

    assert response.status_code == 413
    assert response.headers["X-Request-Id"]


def test_an_action_without_arguments_refuses_a_large_body_too(client: FlaskClient) -> None:
    response = client.post("/api/v1/contacts/a/publish", data=b" " * 300_000, content_type="application/json")

    assert response.status_code == 413


def test_a_query_reaches_the_view(client: FlaskClient) -> None:
    response = client.get("/api/v1/contacts?tag=a%20b&status=x&status=y")

    assert response.json == {"data": {"limit": 50, "tag": "a b", "status": ["x", "y"]}}


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "/limit"),
        ("limit=101", "/limit"),
        ("limit=x", "/limit"),
        ("limit=", "/limit"),
        ("limit=1&limit=2", "/limit"),
        ("offset=3", "/offset"),
        ("tag=a%00", "/tag"),
    ],
)
def test_a_wrong_query_is_pointed_at(client: FlaskClient, query: str, pointer: str) -> None:
    assert pointers(client.get(f"/api/v1/contacts?{query}")) == [pointer]


def test_a_path_with_a_nul_leads_nowhere(client: FlaskClient) -> None:
    assert client.post("/api/v1/contacts/a%00b/publish").status_code == 404


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("OPTIONS", 200), ("PUT", 405)])
def test_other_methods_are_answered(client: FlaskClient, method: str, status: int) -> None:
    assert client.open("/api/v1/contacts", method=method).status_code == status
