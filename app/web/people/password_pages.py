"""Passwords without a session: requesting a link, and using one."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.domain.people import emails, links, sessions, sign_ins
from app.domain.people.accounts import LONGEST_EMAIL
from app.errors import Conflict, Invalid, NotFound, SignInThrottled
from app.web import access
from app.web.access import public
from app.web.forms import errors_of

blueprint = Blueprint("password_pages", __name__)


@blueprint.get("/forgotten")
@public
def ask() -> str:
    """Shows the form that requests a link; if no e-mail can be sent, says whom to ask."""
    return render_template("passwords/ask.html", can_be_sent=emails.can_be_sent(), email="")


@blueprint.post("/forgotten")
@public
def send() -> str | tuple[str, int, dict[str, str]]:
    """Arranges an e-mail with the link. The response is the same for every address.

    Shows the form again, with 429, after too many requests.
    """
    email = request.form.get("email", "").strip()[:LONGEST_EMAIL]
    try:
        sign_ins.count_request(request.remote_addr or "")
    except SignInThrottled as error:
        headers = {"Retry-After": str(error.retry_after_seconds)}
        again = render_template("passwords/ask.html", can_be_sent=True, email=email, refusal=error.in_general)
        return again, 429, headers
    if emails.can_be_sent():
        emails.arrange_reset(email)
    return render_template("passwords/ask.html", can_be_sent=emails.can_be_sent(), email=email, was_asked=True)


@blueprint.get("/links/<token>")
@public
def open_link(token: str) -> str | tuple[str, int]:
    """Shows what the link is for; responds with 404 if the link no longer works.

    Opening it does not use it up, because mail servers open links, too.
    """
    try:
        return render_template("passwords/link.html", link=links.find(token), errors={})
    except NotFound as error:
        return _gone(error)


@blueprint.post("/links/<token>")
@public
def use_link(token: str) -> Response | str | tuple[str, int]:
    """Sets the password and signs in, or joins the workspace; redirects to the first page.

    Works once: after that, responds with 404. If it is refused, shows the form again.
    """
    password, repeated = request.form.get("password", ""), request.form.get("repeated", "")
    try:
        link = links.find(token)
        if link.sets_password and password != repeated:
            return _again(link, {"repeated": "This is not the same as above."})
        if not link.sets_password and (refusal := _must_sign_in(link)):
            return refusal
        link = links.use(token, password)
    except NotFound as error:
        return _gone(error)
    except Invalid as error:
        return _again(link, errors_of(error))
    except Conflict as error:
        return _again(link, {"password": error.detail})
    if not link.sets_password:
        flash(f"You have joined {link.workspace_name}.", "good")
        return redirect(url_for("start.show"), 303)
    access.sign_in(sessions.begin(link.account_id, request.remote_addr or "", request.user_agent.string))
    flash("Your password is set, and you are signed in.", "good")
    return redirect(url_for("start.show"), 303)


def _must_sign_in(link: links.Open) -> Response | tuple[str, int] | None:
    """Returns the response that asks the person to sign in before joining; None if not needed.

    It is needed if no e-mail can be sent. Then the account's password may have been set by somebody who does not own
    the address, possibly in another workspace.
    """
    who = access.viewer()
    if emails.can_be_sent() or (who is not None and who.signed.account_id == link.account_id):
        return None
    if who is None:
        return redirect(url_for("sign_ins.show", next=request.path), 303)
    return _again(link, {"password": f"You are signed in as {who.signed.email}. Sign out, and open the link again."})


def _again(link: links.Open, errors: dict[str, str]) -> tuple[str, int]:
    return render_template("passwords/link.html", link=link, errors=errors), 422


def _gone(error: NotFound) -> tuple[str, int]:
    return render_template("passwords/gone.html", detail=error.detail), 404
