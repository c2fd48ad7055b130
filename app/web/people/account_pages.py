"""The viewer's account: password, sessions, e-mail."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, render_template, request, url_for
from werkzeug.wrappers import Response

from app.domain.people import accounts, emails, notifications, sessions, sign_ins
from app.errors import Invalid, NotFound, SignInRefused, SignInThrottled
from app.web import access
from app.web.access import signed_in, viewer

blueprint = Blueprint("account_pages", __name__, url_prefix="/account")


@blueprint.get("")
@signed_in
def show() -> str:
    """Shows the account and its sessions."""
    return _page({})


@blueprint.post("/password")
@signed_in
def change_password() -> Response | tuple[str, int]:
    """Changes the password. Ends all sessions, and starts a new one for this browser.

    Redirects to the account. Shows the form again if it has faults, or with 429 after too many wrong passwords.
    """
    current, password = request.form.get("current", ""), request.form.get("password", "")
    if password != request.form.get("repeated", ""):
        return _page({"repeated": "This is not the same as above."}), 422
    signed, address = viewer().signed, request.remote_addr or ""
    try:
        accounts.check_password(password)
        sign_ins.confirm(signed.email, current, address)
    except Invalid as error:
        return _page({"password": error.faults[0].detail}), 422
    except SignInRefused:
        return _page({"current": "This is not your password."}), 422
    except SignInThrottled as error:
        return _page({"current": error.in_general}), 429
    accounts.set_password(signed.account_id, password)
    access.sign_in(sessions.begin(signed.account_id, address, request.user_agent.string))
    return _back("Your password was changed. All other sessions have ended.")


@blueprint.post("/sessions/<session_id>/end")
@signed_in
def end_session(session_id: str) -> Response:
    """Ends one of the viewer's sessions, and redirects to the account.

    Ending this session signs out, and redirects to the sign-in form. Raises NotFound for an ended session.
    """
    signed = viewer().signed
    if session_id not in {each.id for each in sessions.of(signed.account_id)}:
        raise NotFound("This session has ended already.")
    sessions.end(session_id)
    if session_id == signed.session_id:
        access.sign_out()
        return redirect(url_for("sign_ins.show"), 303)
    return _back("The session was ended.")


@blueprint.post("/sessions/end-others")
@signed_in
def end_other_sessions() -> Response:
    """Ends all of the viewer's sessions except this one, and redirects to the account."""
    signed = viewer().signed
    sessions.end_all(signed.account_id, except_=signed.session_id)
    return _back("All other sessions were ended.")


@blueprint.post("/email")
@signed_in
def choose_email() -> Response:
    """Stores whether the viewer gets notifications by e-mail, and redirects to the account."""
    wanted = request.form.get("wants_email") == "true"
    notifications.want_email(viewer().signed.account_id, wanted)
    return _back("You get notifications by e-mail." if wanted else "You get no notifications by e-mail.")


def _back(done: str) -> Response:
    flash(done, "good")
    return redirect(url_for("account_pages.show"), 303)


def _page(errors: dict[str, str]) -> str:
    signed = viewer().signed
    return render_template(
        "account/show.html",
        signed=signed,
        sessions=sessions.of(signed.account_id),
        account=accounts.get(signed.account_id),
        can_be_sent=emails.can_be_sent(),
        errors=errors,
    )
