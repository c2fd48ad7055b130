"""The pages for support staff and for the members of a workspace, rendered on the server.

Their forms request the same kinds of writes as the API (`app/domain/verbs.py`).
"""

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

# A page shows text by strangers, so it loads nothing from other sites, and allows no inline scripts, inline styles or
# frames.
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
    """Creates the Flask application of the pages. Every module here with a `blueprint` is part of it."""
    pages = Flask("app.web", static_folder=None)
    pages.request_class = FormRequest
    # Do not redirect to normalized paths: the redirect would contain the host name that the request sent.
    pages.url_map.strict_slashes = pages.url_map.merge_slashes = False
    pages.config.update(
        cookies.configuration(),
        WTF_CSRF_TIME_LIMIT=None,  # a token lasts as long as the session: a page may stay open for days
        MAX_CONTENT_LENGTH=MOST_FORM_BYTES,
        MAX_FORM_MEMORY_SIZE=MOST_FORM_BYTES,
    )
    access.install(pages)
    # Runs after the access check, so that nobody without access can make us read a large form.
    csrf = CSRFProtect(pages)
    csrf.exempt(notification_pages.unsubscribe)  # mail programs send it; its token grants the permission
    errors.install(pages)
    assets.install(pages)
    formats.install(pages)
    navigation.install(pages)
    for name in find_modules(__name__, recursive=True):
        if blueprint := vars(import_string(name)).get("blueprint"):
            pages.register_blueprint(blueprint)
    # Live updates may come from another address.
    live = config.settings().realtime_url
    policy = _POLICY.format(live="" if live == config.settings().base_url else f" {live}")
    pages.after_request(partial(_secure, {**_HEADERS, "Content-Security-Policy": policy}))
    if proxies := config.settings().trusted_proxies:
        pages.wsgi_app = ProxyFix(pages.wsgi_app, x_for=proxies, x_proto=0)  # type: ignore[method-assign]
    return pages


def compile_templates(pages: Flask) -> None:
    """Compiles every template. Call this at the start, or the first visitors wait most of a second."""
    for name in pages.jinja_env.list_templates():
        pages.jinja_env.get_template(name)


def _secure(headers: Mapping[str, str], response: Response) -> Response:
    for name, value in headers.items():
        response.headers.setdefault(name, value)
    return response
