"""Adds the examples and links that depend on the whole OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from app.api.openapi import examples

_JOB = "/api/v1/workspaces/{workspace}/jobs/{job_id}"


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Adds examples to bodies, and links to jobs and items to responses. Returns the same document."""
    schemas, paths = document["components"]["schemas"], document["paths"]
    shows = {path: item["get"]["operationId"] for path, item in paths.items() if "get" in item}
    for path, item in paths.items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            for content in contents(operation):
                with suppress(examples.Lacking):  # a test reports schemas without an example
                    content.setdefault("example", examples.of_schema(content["schema"], schemas))
            if method != "get":
                _add_links(operation["responses"], path, shows)
    return document


def contents(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields an operation's JSON bodies, except problems, which all operations share."""
    for body in (operation.get("requestBody", {}), *operation["responses"].values()):
        if "application/json" in body.get("content", {}):
            yield body["content"]["application/json"]


def _add_links(responses: dict[str, Any], path: str, shows: dict[str, str]) -> None:
    if _JOB in shows and "202" in responses:
        responses["202"]["links"] = {"job": _link(_JOB, shows)}
    item = next(
        (shown for shown in shows if shown.startswith(f"{path}/{{") and "/" not in shown[len(path) + 1 :]), None
    )
    for status in ("200", "201"):
        if item is not None and status in responses:
            responses[status]["links"] = {"item": _link(item, shows)}


def _link(path: str, shows: dict[str, str]) -> dict[str, Any]:
    parameters = {
        "workspace": "$request.path.workspace",
        path.rpartition("{")[2].rstrip("}"): "$response.body#/data/id",
    }
    return {"operationId": shows[path], "parameters": parameters}
