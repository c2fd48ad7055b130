"""The OpenAPI document: blueprints describe their operations; shared parts are added here."""

from __future__ import annotations

from copy import deepcopy

import flask_smorest
from flask import Flask, Response

from app.api.openapi import documents, event_schemas, properties
from app.api.openapi.components import HEADERS, PARAMETERS
from app.api.openapi.operations import Conventions
from app.api.openapi.problems import problem_responses, problem_schemas
from app.domain.automations import definitions
from app.domain.macros import macro_actions
from app.lib import json

VERSION = "3.1.0"


class Api(flask_smorest.Api):
    """flask-smorest's registration and document, without its error responses and error handler."""

    DEFAULT_ERROR_RESPONSE_NAME = None
    _document: bytes | None = None

    def _register_error_handlers(self) -> None:
        """Does nothing: `app.api.problems` handles errors."""

    def _openapi_json(self) -> Response:
        if self._document is None:
            document = self.spec.to_dict() | {"webhooks": event_schemas.webhooks()}
            self._document = json.dumps(documents.completed(document))
        return Response(self._document, mimetype="application/json")

    def _register_responses(self) -> None:
        for add in properties.ADDED:
            self.ma_plugin.converter.add_attribute_function(add)
        components = self.spec.components
        components.security_scheme(
            "bearer", {"type": "http", "scheme": "bearer", "description": "A token of the workspace: `bhp_…`."}
        )
        for name, header in HEADERS.items():
            components.header(name, header)
        for name, parameter in PARAMETERS.items():
            components.parameter(name, "header", deepcopy(parameter))
        schemas = {**problem_schemas(), **event_schemas.schemas(), **definitions.SCHEMAS, **macro_actions.SCHEMAS}
        for name, schema in schemas.items():
            components.schema(name, component=schema)
        for name, response in problem_responses(self.spec.options["servers"][0]["url"]).items():
            components.response(name, response)

    def _register_etag_headers(self) -> None:
        """Does nothing: responses have no ETags."""

    def _register_pagination_header(self) -> None:
        """Does nothing: lists contain their cursor in the body."""


def install(app: Flask, base_url: str) -> Api:
    """Returns the Api for registering blueprints. Serves the document at `/api/v1/openapi.json`."""
    app.config.setdefault("API_TITLE", "Bellhop")
    app.config.setdefault("API_VERSION", "v1")
    app.config.setdefault("OPENAPI_VERSION", VERSION)
    app.config.setdefault("OPENAPI_URL_PREFIX", "/api/v1")
    app.config.setdefault("OPENAPI_JSON_PATH", "openapi.json")
    options = {
        "extra_plugins": [Conventions(app)],
        "servers": [{"url": base_url, "description": "This server."}],
        "security": [{"bearer": []}],
        "info": {
            "description": "Contacts, automations, sales, bookings, billing and outbound webhooks of a workspace. "
            "Every write is a job; every error is a problem document (RFC 9457).\n\nEverything below "
            "`/api/v1/workspaces/{workspace}/` also answers below `/api/v1/`, for the token's own workspace: "
            "`POST /api/v1/contacts` is the `POST` to "
            "`contacts` of that workspace. Only the long form is listed here, and only it is used in responses. For an "
            "`Idempotency-Key` the two forms are different requests."
        },
    }
    return Api(app, spec_kwargs=options)
