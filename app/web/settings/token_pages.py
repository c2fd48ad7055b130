"""Tokens: creating, showing once, restricting and revoking them."""

from __future__ import annotations

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.config import settings
from app.domain.people import tokens
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import ids
from app.models.tokens import Token
from app.web import lists
from app.web.access import page, viewer, workspace_id
from app.web.forms import Answer, errors_of, typed, typed_all
from app.web.redirects import to

blueprint = Blueprint("token_pages", __name__, url_prefix="/workspaces/<workspace>/settings/developers/tokens")

OPENS = {
    "contacts": "Contacts with their tags, sales and bookings; imports, exports and erasure.",
    "inbox": "Conversations, messages, channels and members.",
    "automations": "Automations and their runs, and starting them.",
    "billing": "The plan, its usage and the invoices.",
    "webhooks": "Endpoints, events, deliveries and replays.",
}
EVERYTHING, SOME = "everything", "some"
LIFETIMES = {"": "Never", "1": "In a day", "7": "In 7 days", "30": "In 30 days", "90": "In 90 days", "365": "In a year"}
_DAY_SECONDS = 24 * 60 * 60


@blueprint.get("")
@page("tokens.manage")
def index() -> str:
    """Lists the tokens, newest first, including expired and revoked ones."""
    found = Token.select().where(Token.workspace_id == workspace_id())
    shown = lists.page_of(found, Token)
    return render_template("tokens/index.html", page=shown, state_of=tokens.state_of, base_url=settings().base_url)


@blueprint.get("/new")
@page("tokens.manage")
def new() -> str:
    """Shows the form of a new token."""
    return _form({"access": EVERYTHING, "expires": "90"}, [])


@blueprint.post("/new")
@page("tokens.manage")
def create() -> Answer:
    """Creates the token and shows it, in this response only. A second click creates none (409).

    Shows the form again if it is invalid.
    """
    given, ticked = typed("name", "access", "expires", "token_id"), typed_all("restrictions")
    try:
        token = _issue(given, ticked)
    except Invalid as error:
        return _form(given, ticked, errors_of(error)), 422
    except Conflict:
        return render_template("tokens/made.html", token=None), 409
    return render_template("tokens/made.html", token=token, name=given["name"], base_url=settings().base_url)


@blueprint.post("/<token_id>/revoke")
@page("tokens.manage")
def revoke(token_id: str) -> Response:
    """Revokes the token, and redirects to the list. Safe to repeat."""
    tokens.revoke(token_id, workspace_id(), viewer().actor_id)
    return to("token_pages.index", "The token was revoked. Programs that still use it are refused from now on.")


def _issue(given: dict[str, str], ticked: list[str]) -> str:
    if not ids.is_id(given["token_id"], "tok"):
        raise NotFound("This form is not valid. Open it again.")
    if given["access"] not in (EVERYTHING, SOME) or (given["access"] == SOME and not ticked):
        raise Invalid(Fault("/restrictions", "Tick what the token may do, or let it do everything."))
    if given["expires"] not in LIFETIMES:
        raise Invalid(Fault("/expires", "Choose when the token expires."))
    return tokens.issue(
        workspace_id(),
        given["name"],
        ticked if given["access"] == SOME else None,
        int(given["expires"]) * _DAY_SECONDS if given["expires"] else None,
        token_id=given["token_id"],
        actor_id=viewer().actor_id,
    )[1]


def _form(given: dict[str, str], ticked: list[str], errors: dict[str, str] | None = None) -> str:
    # The form contains the new token's identifier, by which a second click is detected.
    return render_template(
        "tokens/new.html",
        given=given,
        ticked=ticked,
        errors=errors or {},
        opens=OPENS,
        lifetimes=list(LIFETIMES.items()),
        token_id=request.form.get("token_id") or ids.new("tok"),
    )
