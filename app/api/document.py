"""What the OpenAPI document can say only as a whole: an example of every body, and links to what an answer names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from app.api import examples

_JOB = "/api/v1/workspaces/{workspace}/jobs/{job_id}"


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The same document, with the examples and links that follow from the rest of it."""
    schemas, paths = document["components"]["schemas"], document["paths"]
    shows = {path: item["get"]["operationId"] for path, item in paths.items() if "get" in item}
    for path, item in paths.items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            for content in contents(operation):
                with suppress(examples.Lacking):  # a test tells of it
                    content.setdefault("example", examples.of_schema(content["schema"], schemas))
            if method != "get":
                _add_links(operation["responses"], path, shows)
    return document


def contents(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The JSON bodies of an operation that are its own: not the problems, which all share."""
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
