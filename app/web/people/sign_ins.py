"""Signing in and out."""

from __future__ import annotations

from flask import Blueprint, Response, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from app.domain.people import sessions, sign_ins
from app.domain.people.accounts import LONGEST_EMAIL
from app.errors import BellhopError, SignInRefused, SignInThrottled, Unavailable
from app.web import access
from app.web.access import public, signed_in, viewer
from app.web.redirects import ours

blueprint = Blueprint("sign_ins", __name__)


@blueprint.get("/sign-in")
@public
def show() -> str | AnyResponse:
    """Shows the form; redirects viewers who are signed in to the first page."""
    if access.viewer():
        return redirect(url_for("start.show"), 303)
    return render_template("sign_in.html", email="", refusal=None)


@blueprint.post("/sign-in")
@public
def sign_in() -> AnyResponse:
    """Signs in, and redirects to the wanted page. If refused (422, 429, 503), shows the form again."""
    email, password = request.form.get("email", ""), request.form.get("password", "")
    try:
        token = sign_ins.sign_in(email, password, request.remote_addr or "", request.user_agent.string)
    except SignInThrottled as error:
        return _again(email, error, 429, {"Retry-After": str(error.retry_after_seconds)})
    except SignInRefused as error:
        return _again(email, error, 422)
    except Unavailable as error:
        return _again(email, error, 503, {"Retry-After": "2"})
    access.sign_in(token)
    return redirect(ours(request.args.get("next", "")) or url_for("start.show"), 303)


@blueprint.post("/sign-out")
@signed_in
def sign_out() -> AnyResponse:
    """Ends the session, and redirects to the form."""
    sessions.end(viewer().signed.session_id)
    access.sign_out()
    return redirect(url_for("sign_ins.show"), 303)


def _again(email: str, error: BellhopError, status: int, headers: dict[str, str] | None = None) -> Response:
    html = render_template("sign_in.html", email=email[:LONGEST_EMAIL], refusal=error.detail)
    return Response(html, status, headers)
