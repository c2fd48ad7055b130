"""The OpenAPI document: what all operations share is added here, so that blueprints describe only what is their own."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from http import HTTPStatus
from typing import Any

import flask_smorest
import marshmallow
from apispec import BasePlugin
from flask import Flask, Response
from marshmallow import fields

from app.api import document, examples
from app.lib import json
from app.lib.problems import PROBLEMS

# Swagger UI in the bundle reads 3.0 and not 3.1.
OPENAPI_VERSION = "3.0.3"
_WRITES = {"post", "put", "patch", "delete"}
_ANY_TOKEN = ("/auth/me", "/webhooks/events")
_EXAMPLE_ID = "5f0c6f1d2b7e4a8f9d3c1b2a4e6f8071"
_UUID_V4 = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
STORABLE_TEXT = r"^[^\u0000]*$"
View = Callable[..., Any]

HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": {
        "description": "Identifies the request; equal to the traceId of a problem.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
    },
    "Location": {
        "description": "Address of the job (202) or of what was made (201).",
        "required": True,
        "schema": {"type": "string", "format": "uri"},
    },
    "Preference-Applied": {
        "description": "The preference that was honoured (RFC 7240), such as `wait=10`.",
        "schema": {"type": "string"},
    },
    "Idempotent-Replayed": {
        "description": "`true` where the answer is that of an earlier request with the same Idempotency-Key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Retry-After": {
        "description": "Seconds to wait before trying again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "WWW-Authenticate": {
        "description": 'The scheme to authenticate with: `Bearer`, with `error="invalid_token"` if a token was sent.',
        "required": True,
        "schema": {"type": "string"},
    },
    "Allow": {
        "description": "The methods that the address answers.",
        "required": True,
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": "How many requests (`q`) a token may make in how many seconds (`w`).",
        "schema": {"type": "string"},
        "example": '"default";q=6000;w=60',
    },
    "RateLimit": {
        "description": "How many requests the token may make now (`r`), and in how many seconds one is added (`t`).",
        "schema": {"type": "string"},
        "example": '"default";r=5999;t=1',
    },
}

PARAMETERS: dict[str, dict[str, Any]] = {
    "Prefer": {
        "description": "`wait=N`: answer with the result if the write ends within N seconds (1 to 30; RFC 7240).",
        "schema": {"type": "string"},
        "example": "wait=10",
    },
    "Idempotency-Key": {
        "description": "A UUIDv4, new for each operation. Within 24 hours the same request with the same key gets the "
        "same job and does nothing else.",
        # Without an example: sent as it is with two different requests, it would be refused.
        "schema": {"type": "string", "pattern": _UUID_V4},
    },
    "X-Request-Id": {
        "description": "The caller's own identifier of the request, kept if it is 1 to 128 of `A-Za-z0-9._-`.",
        "schema": {"type": "string"},
    },
}

# The problem of a job is also the answer to whoever waits for it.
_OF_WAITING = ["Preference-Applied", "Idempotent-Replayed"]
_OWN_HEADERS = {
    401: ["WWW-Authenticate"],
    404: _OF_WAITING,
    405: ["Allow"],
    409: _OF_WAITING,
    422: _OF_WAITING,
    429: ["Retry-After"],
    500: _OF_WAITING,
    503: ["Retry-After"],
}
_LIMITS = ("RateLimit-Policy", "RateLimit")


class DocumentedBlueprint(flask_smorest.Blueprint):
    """A blueprint whose decorators that only document leave the view as it is."""

    def response(self, *args: Any, **described: Any) -> Callable[[View], View]:
        """Documents a response. The views make theirs themselves."""
        return _only_document(super().response(*args, **described))

    def alt_response(self, *args: Any, **described: Any) -> Callable[[View], View]:
        return _only_document(super().alt_response(*args, **described))

    @staticmethod
    def refusals(*statuses: int) -> Callable[[View], View]:
        """Documents problem responses beyond those that `Conventions` adds to every operation."""

        def decorate(view: View) -> View:
            apidoc = deepcopy(getattr(view, "_apidoc", {}))
            responses = apidoc.setdefault("response", {}).setdefault("responses", {})
            for status in statuses:
                responses[status] = [response_name(status)]
            view._apidoc = apidoc  # type: ignore[attr-defined]
            return view

        return decorate

    @staticmethod
    def doc(**described: Any) -> Callable[[View], View]:
        def decorate(view: View) -> View:
            apidoc = deepcopy(getattr(view, "_apidoc", {}))
            apidoc["manual_doc"] = apidoc.get("manual_doc", {}) | described
            view._apidoc = apidoc  # type: ignore[attr-defined]
            return view

        return decorate


def _only_document(decorate: Callable[[View], View]) -> Callable[[View], View]:
    def document(view: View) -> View:
        view._apidoc = decorate(view)._apidoc  # type: ignore[attr-defined]
        return view

    return document


class Conventions(BasePlugin):
    """Adds to every operation what holds for all: problems, headers, Prefer and Idempotency-Key, an operationId."""

    def __init__(self, app: Flask) -> None:
        self._app = app

    def schema_helper(self, name: str, definition: Any, schema: Any = None, **_: Any) -> Any:
        """What a schema says of itself as `described`, where its fields cannot."""
        return getattr(schema, "described", None)

    def path_helper(
        self, path: Any = None, operations: Any = None, parameters: list[dict[str, Any]] | None = None, **_: Any
    ) -> None:
        for parameter in parameters or ():
            _describe_path_parameter(parameter)

    def operation_helper(
        self, path: str | None = None, operations: dict[str, Any] | None = None, rule: Any = None, **_: Any
    ) -> None:
        for method, operation in (operations or {}).items():
            operation.setdefault("operationId", rule.endpoint.rpartition(".")[2])
            _add_restriction(operation, getattr(self._app.view_functions[rule.endpoint], "restriction", None))
            _add_problems(operation, method, path or "")
            _add_parameters(operation, method)
            _add_headers(operation, method)


class Api(flask_smorest.Api):
    """flask-smorest's registration and document, without its error responses and error handler."""

    DEFAULT_ERROR_RESPONSE_NAME = None
    _document: bytes | None = None

    def _register_error_handlers(self) -> None:
        """`app.api.problems` answers errors."""

    def _openapi_json(self) -> Response:
        if self._document is None:
            self._document = json.dumps(document.completed(self.spec.to_dict()))
        return Response(self._document, mimetype="application/json")

    def _register_responses(self) -> None:
        for add in (nullable_reference, count_of_members, storable_text, example_of_field):
            self.ma_plugin.converter.add_attribute_function(add)
        components = self.spec.components
        components.security_scheme(
            "bearer",
            {"type": "http", "scheme": "bearer", "description": "A token of the workspace: `bhp_…`."},
        )
        for name, header in HEADERS.items():
            components.header(name, header)
        for name, parameter in PARAMETERS.items():
            components.parameter(name, "header", deepcopy(parameter))
        for name, schema in _problem_schemas().items():
            components.schema(name, component=schema)
        for status in sorted({problem.status for problem in PROBLEMS.values()}):
            components.response(
                response_name(status), _problem_response(status, self.spec.options["servers"][0]["url"])
            )

    def _register_etag_headers(self) -> None:
        """There are no ETags."""

    def _register_pagination_header(self) -> None:
        """Lists have cursors, in their envelope."""


def install(app: Flask, base_url: str) -> Api:
    """The Api with which blueprints are registered; serves the document at `/api/v1/openapi.json`."""
    app.config.setdefault("API_TITLE", "Bellhop")
    app.config.setdefault("API_VERSION", "v1")
    app.config.setdefault("OPENAPI_VERSION", OPENAPI_VERSION)
    app.config.setdefault("OPENAPI_URL_PREFIX", "/api/v1")
    app.config.setdefault("OPENAPI_JSON_PATH", "openapi.json")
    options = {
        "extra_plugins": [Conventions(app)],
        "servers": [{"url": base_url, "description": "This server."}],
        "security": [{"bearer": []}],
        "info": {
            "description": "Contacts, sales, bookings, billing and outbound webhooks of a workspace. Every write is a "
            "job; every error is a problem document (RFC 9457)."
        },
    }
    return Api(app, spec_kwargs=options)


def response_name(status: int) -> str:
    """The name of a problem response among the components: `NotFound` for 404."""
    return HTTPStatus(status).phrase.title().replace(" ", "").replace("-", "")


def header_references(*names: str) -> dict[str, dict[str, str]]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def nullable_reference(_converter: Any, _field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """A schema that may be null: apispec would let any object stand for null, and contradict itself beside `anyOf`."""
    for inner in ret.get("anyOf", ()):
        if inner == {"type": "object", "nullable": True}:
            inner["enum"] = [None]
    if "anyOf" in ret:
        for name in ("type", "additionalProperties", "nullable"):
            ret.pop(name, None)
    return {}


def count_of_members(_converter: Any, _field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """apispec says of an object how long it may be, and not how many members it may have."""
    return {"maxProperties": ret.pop("maxLength")} if ret.get("type") == "object" and "maxLength" in ret else {}


def storable_text(_converter: Any, field: fields.Field[Any], ret: dict[str, Any]) -> dict[str, str]:
    """Text in a request holds no U+0000. Schemas of responses are those whose names end with Schema."""
    is_free = isinstance(field, fields.String) and not ret.keys() & {"pattern", "enum", "format"}
    schema = type(field.root).__name__
    if not is_free or schema.endswith("Schema"):
        return {}
    # A filter by something that is no identifier finds nothing; a body with one is refused.
    is_filter = schema.endswith("Query")
    return {"pattern": STORABLE_TEXT if is_filter else examples.pattern(field.name or "") or STORABLE_TEXT}


def example_of_field(_converter: Any, field: fields.Field[Any], ret: dict[str, Any]) -> dict[str, Any]:
    """The example of a field that has none of its own, by its name."""
    if "example" in ret or not isinstance(field.parent, marshmallow.Schema) or field.name is None:
        return {}
    example = examples.of_field(type(field.parent), field.name, "enum" in ret)
    return {} if example is None else {"example": example}


def _describe_path_parameter(parameter: dict[str, Any]) -> None:
    name = parameter["name"]
    thing = name.removesuffix("_id")
    if (example := examples.identifier(thing)) is not None:
        parameter.setdefault("description", f"Identifier of the {thing.replace('_', ' ')}.")
        parameter["schema"] = {"type": "string", "pattern": examples.pattern(name), "example": example}


def _add_restriction(operation: dict[str, Any], restriction: str | None) -> None:
    needs = f"a token with access to `{restriction}`, or an unrestricted one" if restriction else "any valid token"
    operation["description"] = f"{operation.get('description', '')}\n\nNeeds {needs}.".strip()
    operation["x-restriction"] = restriction


def _add_problems(operation: dict[str, Any], method: str, path: str) -> None:
    is_public = operation.get("security") == []
    statuses = [400, 422, 500, 503]
    if not is_public:
        statuses += [401, 429]
    if not is_public and not path.endswith(_ANY_TOKEN):
        statuses += [403]
    if "{" in path:
        statuses += [404]
    if method in _WRITES:
        statuses += [413, 415]
    responses = operation.setdefault("responses", {})
    present = {str(status) for status in responses}
    for status in sorted(statuses):
        if str(status) not in present:
            responses[status] = response_name(status)
    operation["responses"] = dict(sorted(responses.items(), key=lambda item: str(item[0])))


def _add_parameters(operation: dict[str, Any], method: str) -> None:
    names = ["X-Request-Id", "Prefer", "Idempotency-Key"] if method in _WRITES else ["X-Request-Id"]
    parameters = operation.setdefault("parameters", [])
    present = {parameter if isinstance(parameter, str) else parameter.get("name") for parameter in parameters}
    parameters += [name for name in names if name not in present]


def _add_headers(operation: dict[str, Any], method: str) -> None:
    for status, response in operation["responses"].items():
        if isinstance(response, dict) and "$ref" not in response:
            names = ["X-Request-Id", *_LIMITS]
            if method in _WRITES and str(status).startswith("2"):
                names += ["Idempotent-Replayed"]
                names += ["Location"] if str(status) in ("201", "202") else []
                names += ["Preference-Applied"] if str(status) != "202" else []
            response["headers"] = header_references(*names) | response.get("headers", {})


def _problem_response(status: int, base_url: str) -> dict[str, Any]:
    problems = [problem for problem in PROBLEMS.values() if problem.status == status]
    schema = "ValidationProblem" if status == 422 else "Problem"
    examples = {
        problem.slug: {
            "value": {
                "type": f"{base_url}/problems/{problem.slug}",
                "title": problem.title,
                "status": status,
                "detail": problem.detail,
                "traceId": _EXAMPLE_ID,
            }
            | ({"errors": [_EXAMPLE_FAULT]} if problem.slug == "validation-failed" else {})
        }
        for problem in problems
    }
    limits = () if status == 401 else _LIMITS  # without a valid token nothing is counted
    return {
        "description": " or ".join(f"{problem.title} (`{problem.slug}`)" for problem in problems),
        "headers": header_references("X-Request-Id", *_OWN_HEADERS.get(status, []), *limits),
        "content": {
            "application/problem+json": {"schema": {"$ref": f"#/components/schemas/{schema}"}, "examples": examples}
        },
    }


_EXAMPLE_FAULT = {"pointer": "/contact_id", "detail": "Missing data for required field."}


def _problem_schemas() -> dict[str, dict[str, Any]]:
    slugs = ", ".join(f"`{slug}`" for slug in PROBLEMS)
    return {
        "Problem": {
            "type": "object",
            "description": "A problem document (RFC 9457). Some problems have further members.",
            "required": ["type", "title", "status", "detail", "traceId"],
            "properties": {
                "type": {
                    "type": "string",
                    "format": "uri",
                    "description": f"`<base_url>/problems/<slug>`; the slugs are {slugs}.",
                },
                "title": {"type": "string", "description": "Short summary."},
                "status": {"type": "integer", "minimum": 400, "maximum": 599},
                "detail": {"type": "string", "description": "Explanation to show to operators."},
                "traceId": {"type": "string", "description": "Keep it for support; equal to X-Request-Id."},
            },
        },
        "ValidationProblem": {
            "allOf": [
                {"$ref": "#/components/schemas/Problem"},
                {
                    "type": "object",
                    "properties": {"errors": {"type": "array", "items": {"$ref": "#/components/schemas/Fault"}}},
                },
            ]
        },
        "Fault": {
            "type": "object",
            "required": ["pointer", "detail"],
            "properties": {
                "pointer": {
                    "type": "string",
                    "description": "RFC 6901 pointer into the body, or `/` and the name of a query parameter.",
                },
                "detail": {"type": "string"},
            },
        },
    }
