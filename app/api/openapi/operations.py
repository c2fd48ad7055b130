"""Adds to each operation of the OpenAPI document the parts that follow from conventions."""

from __future__ import annotations

from typing import Any

from apispec import BasePlugin
from flask import Flask

from app.api.authentication import token_for
from app.api.openapi import examples
from app.api.openapi.components import LIMITS, header_references
from app.api.openapi.problems import response_name

_WRITES = {"post", "put", "patch", "delete"}
_ANY_TOKEN = ("/auth/me", "/webhooks/events")


class Conventions(BasePlugin):
    """An apispec plugin that adds the common parts to every operation."""

    def __init__(self, app: Flask) -> None:
        self._app = app

    def schema_helper(self, name: str, definition: Any, schema: Any = None, **_: Any) -> Any:
        """Returns members that a schema class lists in `described`, because fields cannot express them."""
        return getattr(schema, "described", None)

    def path_helper(
        self, path: Any = None, operations: Any = None, parameters: list[dict[str, Any]] | None = None, **_: Any
    ) -> None:
        """Describes the parameters in a path."""
        for parameter in parameters or ():
            name, thing = parameter["name"], parameter["name"].removesuffix("_id")
            if (example := examples.identifier(thing)) is not None:
                parameter.setdefault("description", f"Identifier of the {thing.replace('_', ' ')}.")
                parameter["schema"] = {"type": "string", "pattern": examples.pattern(name), "example": example}

    def operation_helper(
        self, path: str | None = None, operations: dict[str, Any] | None = None, rule: Any = None, **_: Any
    ) -> None:
        """Adds the parts that views do not declare themselves. apispec calls this for each path."""
        for method, operation in (operations or {}).items():
            operation.setdefault("operationId", rule.endpoint.rpartition(".")[2])
            _add_restriction(operation, self._app.view_functions[rule.endpoint])
            _add_problems(operation, method, path or "")
            _add_parameters(operation)
            _add_headers(operation)


def _add_restriction(operation: dict[str, Any], view: Any) -> None:
    restriction = getattr(view, "restriction", None)
    needs = token_for(restriction, *getattr(view, "other_restrictions", ()), quote="`")
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


def _add_parameters(operation: dict[str, Any]) -> None:
    names = ["X-Request-Id", "Prefer", "Idempotency-Key"] if _makes_job(operation) else ["X-Request-Id"]
    parameters = operation.setdefault("parameters", [])
    present = {parameter if isinstance(parameter, str) else parameter.get("name") for parameter in parameters}
    parameters += [name for name in names if name not in present]


def _makes_job(operation: dict[str, Any]) -> bool:
    return "202" in {str(status) for status in operation["responses"]}


def _add_headers(operation: dict[str, Any]) -> None:
    for status, response in operation["responses"].items():
        if isinstance(response, dict) and "$ref" not in response:
            names = ["X-Request-Id", *LIMITS]
            if _makes_job(operation) and str(status).startswith("2"):
                names += ["Idempotent-Replayed"]
                names += ["Location"] if str(status) in ("201", "202") else []
                names += ["Preference-Applied"] if str(status) != "202" else []
            response["headers"] = header_references(*names) | response.get("headers", {})
