"""Paths: finds routes, and converts their variables."""

from __future__ import annotations

from functools import partial

from flask import Flask, Request
from werkzeug.routing import BaseConverter, MapAdapter, PathConverter

_NOWHERE = "/\0"  # matches no route
_WORKSPACE, _SHORT = "/api/v1/workspaces/<workspace>/", "/api/v1/"


class Rest(PathConverter):
    """The rest of a path. It may begin with a slash, because a tag's name may."""

    regex = ".+"
    part_isolating = False


class Identifier(BaseConverter):
    """A segment of a path, but not `import`, `count` or `counts`, with which other routes end."""

    regex = "(?!(?:import|counts?)$)[^/]+"
    part_isolating = True  # werkzeug cannot infer it from this regex, and would try all rules one by one


def install(app: Flask) -> None:
    """Makes `app` find its routes by path and method alone."""
    app.url_map.strict_slashes = False
    # Otherwise, `//` would be redirected to an address built from the Host header.
    app.url_map.merge_slashes = False
    app.url_map.converters |= {"path": Rest, "default": Identifier}
    app.create_url_adapter = partial(_adapter, app)  # type: ignore[method-assign]


def shorten(app: Flask) -> None:
    """Gives every route below a workspace a second path, without the workspace: the token names it."""
    for rule in list(app.url_map.iter_rules()):
        if rule.rule.startswith(_WORKSPACE):
            methods = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            app.add_url_rule(rule.rule.replace(_WORKSPACE, _SHORT, 1), rule.endpoint, methods=methods)


def _adapter(app: Flask, request: Request | None) -> MapAdapter | None:
    """Like Flask's, but ignores the Host header, which no route depends on."""
    if request is None:
        return None
    # werkzeug would read `//api` as `/api`. A proxy that restricts `/api` does not, so its rules could be bypassed.
    path = _NOWHERE if request.environ["PATH_INFO"].startswith("//") else request.path
    return app.url_map.bind("", path_info=path, default_method=request.method)
