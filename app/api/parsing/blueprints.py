"""Blueprints whose routes accept only the query and body that they declare."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import wraps
from typing import Any

import flask_smorest
from flask.globals import request_ctx

from app.api.parsing.bodies import read_object
from app.api.parsing.queries import read_query
from app.domain.bodies.objects import OBJECT_REQUIRED
from app.domain.bodies.pointers import load
from app.errors import Invalid, NotFound
from app.lib.schemas import Query, RequestBody, Schema

View = Callable[..., Any]


class Nothing(Schema):
    """A query or body without fields."""


class Blueprint(flask_smorest.Blueprint):
    """flask-smorest's blueprint with our own parsing, and with responses that are only documented."""

    def arguments(
        self, schema: type[Query | RequestBody], *, required: bool = True, **documentation: Any
    ) -> Callable[[View], View]:
        """Loads the query or body with `schema`, and passes it to the view.

        The loaded value is the view's last positional argument. With `required=False`, a missing body counts as `{}`.
        """
        is_query = issubclass(schema, Query)
        loader = schema()
        described = {"in": "query" if is_query else "json", "required": required, "schema": schema, **documentation}

        def read() -> dict[str, Any]:
            if is_query:
                return read_query(request_ctx.request, loader)
            value = read_object(request_ctx.request)
            if value is None and required:
                raise Invalid(OBJECT_REQUIRED)
            return value or {}

        def decorate(view: View) -> View:
            @wraps(view)
            def parsed(*args: Any, **kwargs: Any) -> Any:
                return view(*args, load(loader, read()), **kwargs)

            apidoc = deepcopy(getattr(view, "_apidoc", {}))
            apidoc.setdefault("arguments", {}).setdefault("parameters", []).append(described)
            parsed._apidoc = apidoc  # type: ignore[attr-defined]
            return parsed

        return decorate

    def response(self, *args: Any, **described: Any) -> Callable[[View], View]:
        """Documents a response. Wraps no view, because views build their responses (decision 18)."""
        return _only_document(super().response(*args, **described))

    def alt_response(self, *args: Any, **described: Any) -> Callable[[View], View]:
        """Documents a further response, like `response`."""
        return _only_document(super().alt_response(*args, **described))

    def add_url_rule(self, rule: str, endpoint: str | None = None, view_func: Any = None, **options: Any) -> None:
        """Registers the view. It refuses a query or body that the view does not declare."""
        super().add_url_rule(rule, endpoint or view_func.__name__, _strict(view_func), **options)


def _only_document(decorate: Callable[[View], View]) -> Callable[[View], View]:
    def document(view: View) -> View:
        view._apidoc = decorate(view)._apidoc  # type: ignore[attr-defined]
        return view

    return document


def _strict(view: View) -> View:
    apidoc = getattr(view, "_apidoc", {})
    declared = {parameter["in"] for parameter in apidoc.get("arguments", {}).get("parameters", ())}
    # A body that is not a JSON object is documented by hand, and read by its view.
    has_body = "json" in declared or "requestBody" in apidoc.get("manual_doc", {})
    has_query = "query" in declared
    nothing = Nothing()

    @wraps(view)
    def strict(*args: Any, **kwargs: Any) -> Any:
        request = request_ctx.request
        if kwargs and "\x00" in request.environ["PATH_INFO"]:
            raise NotFound  # no identifier or name contains U+0000, and PostgreSQL rejects it
        if not has_query and request.query_string:
            load(nothing, read_query(request, nothing))
        if not has_body and request.method not in ("GET", "HEAD", "OPTIONS"):
            load(nothing, read_object(request) or {})
        return view(*args, **kwargs)

    return strict
