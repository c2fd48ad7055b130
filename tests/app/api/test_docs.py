from __future__ import annotations

import re
from typing import Any, ClassVar

import pytest
from flask import Flask
from flask.testing import FlaskClient
from marshmallow import fields, validate

from app.api import docs, openapi, parsing, problems
from app.api.openapi.problems import response_name
from app.api.parsing.blueprints import Blueprint, Nothing
from app.lib.schemas import Query, RequestBody, ResponseBody, Schema
from app.problems import PROBLEMS

BASE = "https://bellhop.test"


EXAMPLE = {
    "name": "Ada",
    "size": "small",
    "contact_id": "con_01kaj5bd40e6rr3f5y2kq0w9xz",
    "part": {"made_at": "2026-11-21T10:00:00.000Z", "weight": 1, "whole": False},
    "extras": {},
    "parts": [{"made_at": "2026-11-21T10:00:00.000Z", "weight": 1, "whole": False}],
    "none": None,
}


class Part(RequestBody):
    made_at = fields.AwareDateTime()
    weight = fields.Integer(validate=validate.Range(1))
    whole = fields.Boolean()


class Thing(RequestBody):
    described: ClassVar[dict[str, Any]] = {"not": {"required": ["secret"]}}
    name = fields.String(required=True, metadata={"example": "Ada"})
    size = fields.String(validate=validate.OneOf(["small", "large"]))
    contact_id = fields.String()
    part = fields.Nested(Part, allow_none=True, metadata={"description": "The main one."})
    extras = fields.Dict(validate=validate.Length(max=9))
    parts = fields.List(fields.Nested(Part))
    none = fields.String(allow_none=True)


class Riddle(RequestBody):
    answer = fields.String()


class Solution(ResponseBody):
    object = fields.String(metadata={"const": "solution"})
    contact_id = fields.String()
    state = fields.String(validate=validate.OneOf(["open", "closed"]))


class Search(Query):
    contact_id = fields.String()


@pytest.fixture
def client() -> FlaskClient:
    blueprint = Blueprint("things", __name__, url_prefix="/api/v1", description="Things")

    @blueprint.route("/things")
    @blueprint.arguments(Search)
    @blueprint.response(200, Thing)
    def list_things(search: dict[str, Any]) -> dict[str, Any]:
        return search

    @blueprint.route("/workspaces/<workspace>/things", methods=["POST"])
    @blueprint.arguments(Thing)
    @blueprint.response(202, Thing)
    @blueprint.alt_response(201, schema=Thing, success=True)
    @blueprint.alt_response(409, response_name(409))
    def create_thing(thing: dict[str, Any], workspace: str) -> dict[str, Any]:
        return thing

    @blueprint.route("/workspaces/<workspace>/riddles", methods=["POST"])
    @blueprint.arguments(Riddle)
    @blueprint.response(202, Solution)
    def solve_riddle(riddle: dict[str, Any], workspace: str) -> dict[str, Any]:
        return riddle

    app = Flask(__name__)
    problems.install(app, BASE)
    parsing.install(app)
    openapi.install(app, BASE).register_blueprint(blueprint)
    app.register_blueprint(docs.blueprint)
    return app.test_client()


@pytest.fixture
def document(client: FlaskClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/api/v1/openapi.json").get_json()
    return found


def test_the_document_says_what_it_describes(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert (document["info"]["title"], document["info"]["version"]) == ("Bellhop", "v1")
    assert [server["url"] for server in document["servers"]] == [BASE]


def test_every_operation_needs_a_token(document: dict[str, Any]) -> None:
    assert document["security"] == [{"bearer": []}]
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_every_status_of_the_table_has_a_response_with_a_problem(document: dict[str, Any]) -> None:
    responses = document["components"]["responses"]

    for status in {problem.status for problem in PROBLEMS.values()}:
        response = responses[response_name(status)]
        assert list(response["content"]) == ["application/problem+json"]
        assert "X-Request-Id" in response["headers"]


def test_the_headers_and_parameters_that_operations_share_are_described(document: dict[str, Any]) -> None:
    headers = document["components"]["headers"].keys()
    assert {"Location", "Preference-Applied", "Idempotent-Replayed", "X-Request-Id"} <= headers
    assert {"Retry-After", "WWW-Authenticate", "Allow"} <= headers
    assert {"Prefer", "Idempotency-Key"} <= set(document["components"]["parameters"])


def test_a_write_lists_every_refusal_and_header_of_a_write(document: dict[str, Any]) -> None:
    operation = document["paths"]["/api/v1/workspaces/{workspace}/things"]["post"]

    assert list(operation["responses"]) == sorted(
        ["201", "202", "400", "401", "403", "404", "409", "413", "415", "422", "429", "500", "503"]
    )
    assert {"$ref": "#/components/parameters/Idempotency-Key"} in operation["parameters"]
    assert {"$ref": "#/components/parameters/Prefer"} in operation["parameters"]
    assert {"Location", "Idempotent-Replayed", "X-Request-Id"} <= set(operation["responses"]["202"]["headers"])
    assert "Preference-Applied" in operation["responses"]["201"]["headers"]
    assert operation["responses"]["409"] == {"$ref": "#/components/responses/Conflict"}


def test_a_read_lists_only_what_a_read_can_answer(document: dict[str, Any]) -> None:
    operation = document["paths"]["/api/v1/things"]["get"]

    assert list(operation["responses"]) == ["200", "400", "401", "403", "422", "429", "500", "503"]


def test_operations_have_the_names_of_their_views(document: dict[str, Any]) -> None:
    assert document["paths"]["/api/v1/things"]["get"]["operationId"] == "list_things"


def test_an_example_is_made_of_those_of_the_fields(document: dict[str, Any]) -> None:
    operation = document["paths"]["/api/v1/workspaces/{workspace}/things"]["post"]

    assert operation["requestBody"]["content"]["application/json"]["example"] == EXAMPLE
    assert operation["responses"]["201"]["content"]["application/json"]["example"] == EXAMPLE


def test_a_field_without_an_example_leaves_its_body_without_one(document: dict[str, Any]) -> None:
    content = document["paths"]["/api/v1/workspaces/{workspace}/riddles"]["post"]["requestBody"]["content"]

    assert "example" not in content["application/json"]


def test_what_may_be_null_is_null_or_what_it_refers_to(document: dict[str, Any]) -> None:
    part = document["components"]["schemas"]["Thing"]["properties"]["part"]

    assert part["anyOf"] == [
        {"$ref": "#/components/schemas/Part"},
        {"type": "null"},
    ]
    assert part.keys() == {"anyOf", "description"}


def test_text_in_a_request_holds_nothing_that_cannot_be_stored(document: dict[str, Any]) -> None:
    properties = document["components"]["schemas"]["Thing"]["properties"]

    assert properties["name"]["pattern"] == "^[^\\u0000]*$"
    assert properties["contact_id"]["pattern"] == "^con_[0-7][0-9a-hjkmnp-tv-z]{25}$"
    assert "pattern" not in properties["size"]


def test_a_response_may_have_further_members_and_values(document: dict[str, Any]) -> None:
    solution = document["components"]["schemas"]["Solution"]

    assert "additionalProperties" not in solution
    assert "enum" not in solution["properties"]["state"]
    assert solution["properties"]["state"]["description"] == "`open`, `closed`; more may be added."
    assert document["components"]["schemas"]["Thing"]["additionalProperties"] is False


def test_a_constant_is_one(document: dict[str, Any]) -> None:
    assert document["components"]["schemas"]["Solution"]["properties"]["object"]["const"] == "solution"


def test_a_filter_may_be_any_text_that_can_be_stored(document: dict[str, Any]) -> None:
    parameter = document["paths"]["/api/v1/things"]["get"]["parameters"][0]

    assert (parameter["name"], parameter["schema"]["pattern"]) == ("contact_id", "^[^\\u0000]*$")


def test_text_in_a_response_has_no_pattern(document: dict[str, Any]) -> None:
    assert "pattern" not in document["components"]["schemas"]["Solution"]["properties"]["contact_id"]


def below(schema: type[Schema]) -> list[type[Schema]]:
    return [kind for inner in schema.__subclasses__() for kind in (inner, *below(inner))]


def test_every_schema_of_the_api_has_one_purpose_by_its_base_class() -> None:
    purposes = (RequestBody, Query, ResponseBody)
    own = [kind for kind in below(Schema) if kind.__module__.startswith("app.") and kind is not Nothing]

    assert len(own) > 40
    assert [kind for kind in own if sum(issubclass(kind, purpose) for purpose in purposes) != 1] == []


def test_a_dictionary_has_a_number_of_members(document: dict[str, Any]) -> None:
    extras = document["components"]["schemas"]["Thing"]["properties"]["extras"]

    assert (extras["maxProperties"], "maxLength" in extras) == (9, False)


def test_a_schema_may_say_more_than_its_fields(document: dict[str, Any]) -> None:
    assert document["components"]["schemas"]["Thing"]["not"] == {"required": ["secret"]}


def test_a_path_parameter_is_described(document: dict[str, Any]) -> None:
    (parameter,) = document["paths"]["/api/v1/workspaces/{workspace}/things"]["parameters"]

    assert parameter["description"] == "Identifier of the workspace."
    assert re.fullmatch(parameter["schema"]["pattern"], parameter["schema"]["example"])


def test_the_page_has_no_style_from_outside(client: FlaskClient) -> None:
    style = client.get("/api/docs/swagger-ui.css").text

    assert [address[:20] for address in re.findall(r"url\(([^)]*)\)", style) if "data:" not in address] == []
    assert "@import" not in style


def test_the_page_asks_nobody_about_the_document(client: FlaskClient) -> None:
    assert "validatorUrl: null" in client.get("/api/docs/start.js").text
    assert 'data-document="/api/v1/openapi.json"' in client.get("/api/docs").text


def test_the_page_loads_nothing_from_outside(client: FlaskClient) -> None:
    response = client.get("/api/docs")

    assert response.headers["Content-Security-Policy"].startswith("default-src 'self'")
    addresses = re.findall(r'(?:src|href)="([^"]+)"', response.text)
    assert len(addresses) >= 4
    assert all(address.startswith("/api/") for address in addresses)
    assert "<script>" not in response.text


def test_every_file_of_the_page_is_served(client: FlaskClient) -> None:
    page = client.get("/api/docs").text

    for address in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert client.get(address).status_code == 200
