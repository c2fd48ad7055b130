"""The pages: for support staff, and for the members of a workspace. Server-rendered, over the same verbs as the API."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from flask import Flask, Response
from flask_wtf import CSRFProtect
from werkzeug.middleware.proxy_fix import ProxyFix
from werkzeug.utils import find_modules, import_string

from app import config
from app.serving import cookies
from app.web import access, assets, errors, formats, navigation
from app.web.forms import FormRequest
from app.web.settings import notification_pages

# Nothing from elsewhere, no inline script or style, no frames: a page shows what strangers wrote.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'{live}; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MOST_FORM_BYTES = 1024 * 1024


def create_pages() -> Flask:
    """The WSGI application of the pages: those of every module below this one that has a `blueprint`."""
    pages = Flask("app.web", static_folder=None)
    pages.request_class = FormRequest
    # No redirects to a path that is spelled better: they would name the host that the request names.
    pages.url_map.strict_slashes = pages.url_map.merge_slashes = False
    _configure_sessions(pages)
    access.install(pages)
    # After the check of access, so that nobody sends a large form who may not send one.
    csrf = CSRFProtect(pages)
    csrf.exempt(notification_pages.unsubscribe)  # mail programs send it; its token is the permission
    errors.install(pages)
    assets.install(pages)
    formats.install(pages)
    navigation.install(pages)
    for name in find_modules(__name__, recursive=True):
        if blueprint := vars(import_string(name)).get("blueprint"):
            pages.register_blueprint(blueprint)
    headers = {**_HEADERS, "Content-Security-Policy": _policy()}
    pages.after_request(partial(_secure, headers))
    if proxies := config.settings().trusted_proxies:
        pages.wsgi_app = ProxyFix(pages.wsgi_app, x_for=proxies, x_proto=0)  # type: ignore[method-assign]
    return pages


def compile_templates(pages: Flask) -> None:
    """Compiles every template, which takes most of a second that the first visitors need not wait."""
    for name in pages.jinja_env.list_templates():
        pages.jinja_env.get_template(name)


def _configure_sessions(pages: Flask) -> None:
    pages.config.update(
        cookies.configuration(),
        WTF_CSRF_TIME_LIMIT=None,  # as long as the session: a page may stay open for days
        MAX_CONTENT_LENGTH=MOST_FORM_BYTES,
        MAX_FORM_MEMORY_SIZE=MOST_FORM_BYTES,
    )


def _policy() -> str:
    """The policy for what pages load; live updates may come from an address of their own."""
    live = config.settings().realtime_url
    return _POLICY.format(live="" if live == config.settings().base_url else f" {live}")


def _secure(headers: Mapping[str, str], response: Response) -> Response:
    for name, value in headers.items():
        response.headers.setdefault(name, value)
    return response
