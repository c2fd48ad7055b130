"""Access: who views a page and what their role allows. Every route declares its access here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

from flask import Flask, current_app, g, redirect, request, session, url_for
from flask_login import LoginManager, current_user, login_user, logout_user
from werkzeug.wrappers import Response

from app import bounds
from app.domain.people import rate_limits, roles, sessions, workspaces
from app.domain.people.sessions import Membership, Signed
from app.errors import BellhopError, NotFound, Overloaded, TooManyPages
from app.lib import ids, switching
from app.models.visits import Visit

_RATES = bounds.Rates()
View = TypeVar("View", bound=Callable[..., Any])
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Writes of a workspace count as delayed if its oldest write has waited this long. A form waits no longer for its own
# write.
DELAYED_SECONDS = 5.0
_NOT_FOR_STAFF = "Support staff cannot do it, not even during a visit."


class Forbidden(BellhopError):
    """The viewer may not take the action: by their role, or because only members may."""

    slug = "insufficient-scope"
    detail = "Your role in this workspace does not include this. Ask an owner of the workspace."

    @classmethod
    def to(cls, action: str) -> Forbidden:
        """Returns the error for that action. Its sentence names the roles that include `action`."""
        allowed = " or ".join(role for role in roles.ROLES if roles.may(role, action))
        own = viewer().membership
        remedy = f"Yours is {own.role}. An owner can change it: see Members." if own else _NOT_FOR_STAFF
        return cls(f"This needs the role {allowed} in this workspace. {remedy}")


class VisitRequired(BellhopError):
    """A member of staff must give a reason before changing something."""

    slug = "insufficient-scope"
    detail = "First say why you change something in this workspace: give a reason and a ticket number."


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person viewing the page: in a workspace, a member, or staff with or without a visit."""

    signed: Signed
    workspace_id: str | None = None
    workspace_name: str | None = None
    membership: Membership | None = None
    visit: Visit | None = None

    is_active = is_authenticated = True  # Flask-Login reads both
    is_anonymous = False

    def get_id(self) -> str:
        """The session's token, which `sign_in` has Flask-Login keep in the cookie."""
        return str(session.get("_user_id"))

    @property
    def member_id(self) -> str | None:
        """The identifier of the viewer's membership; None for support staff."""
        return self.membership.member_id if self.membership else None

    @property
    def actor_id(self) -> str:
        """The identifier that changes are recorded with: of the membership, or of the staff's visit."""
        if self.membership is not None:
            return self.membership.member_id
        assert self.visit is not None
        return self.visit.id

    @property
    def is_delayed(self) -> bool:
        """Whether the workspace's writes are delayed: then pages say so, and forms do not wait."""
        return self.signed.delay_seconds >= DELAYED_SECONDS

    def may(self, action: str) -> bool:
        """Whether the viewer may take the action in the workspace now. Staff need a visit for changes."""
        if self.membership is not None:
            return roles.may(self.membership.role, action)
        return self.signed.is_support and roles.support_may(action, visiting=self.visit is not None)


def public(view: View) -> View:
    """Declares a page for everybody, signed in or not."""
    return _declare(view, public=True)


def asset(view: View) -> View:
    """Declares a file that is the same for everybody. No session is looked up for it."""
    return _declare(view, public=True, asset=True)


def signed_in(view: View) -> View:
    """Declares a page outside workspaces, for everybody who is signed in."""
    return _declare(view)


def staff(view: View) -> View:
    """Declares a page across workspaces, for support staff."""
    return _declare(view, staff=True)


def page(action: str, most_bytes: int | None = None) -> Callable[[View], View]:
    """Declares a page of the workspace in its path, for viewers who may do `action`.

    `action` is a key of `roles.ACTIONS`. The view gets no argument `workspace`: call `workspace_id()`. `most_bytes`:
    the size limit of a form with files, if it is larger than usual.
    """
    if action not in roles.ACTIONS:
        raise ValueError(f"{action} is not in the matrix of roles")
    return lambda view: _declare(view, action=action, most_bytes=most_bytes)


def declared(endpoint: str) -> dict[str, Any]:
    """Returns the access that the endpoint's view declares. Raises KeyError without a declaration."""
    found: dict[str, Any] = vars(current_app.view_functions[endpoint])["access"]
    return found


def viewer() -> Viewer:
    """Returns the person viewing this page. Call it only where somebody is signed in."""
    found: Viewer = g.viewer
    return found


def workspace_id() -> str:
    """Returns the identifier of this page's workspace. Call it only on pages of a workspace."""
    found = viewer().workspace_id
    assert found is not None
    return found


def sign_in(token: str) -> None:
    """Starts the browser's session. Drops the data that the browser sent, against session fixation."""
    session.clear()
    session.permanent = True
    # Flask-Login stores what `get_id` returns in the cookie.
    login_user(SimpleNamespace(is_active=True, is_authenticated=True, get_id=lambda: token))


def sign_out() -> None:
    """Removes the session from the browser. To end the session itself, call `sessions.end`."""
    logout_user()
    session.clear()


def install(pages: Flask) -> None:
    """Checks every request before its view: 404 without access to the workspace, 403 if not allowed.

    Responds with 429 above a session's pages per minute, and above a workspace's pages in progress.
    """
    manager = LoginManager(pages)
    manager.session_protection = None  # would sign out commuters, whose address changes; a session ends with its row
    manager.user_loader(_load)
    pages.before_request(_check)
    pages.teardown_request(_leave)
    pages.context_processor(lambda: {"viewer": g.get("viewer")})


def _declare(view: View, **access: Any) -> View:
    view.access = access  # type: ignore[attr-defined]
    return view


def _load(token: str) -> Viewer | None:
    asked_for = str((request.view_args or {}).get("workspace"))
    # Background requests do not count as use of the session, because nobody may be looking at the page.
    is_use = "background" not in request.args
    signed = sessions.find(token, asked_for if ids.is_id(asked_for, "ws") else None, is_use=is_use)
    return Viewer(signed) if signed else None


def _count() -> None:
    """Counts the request for the session that the cookie names. Raises TooManyPages."""
    token = session.get("_user_id")
    if token is None:
        return
    bound, key = bounds.PAGES_PER_SESSION, f"pages:{hashlib.sha256(str(token).encode()).hexdigest()}"
    standing = rate_limits.count(key, bound.most)
    if standing is None:  # Redis is unavailable: count in this process
        if seconds := _RATES.take(key, bound):
            raise TooManyPages(bound.most, seconds)
    elif not standing.is_within:
        bound.reached()
        raise TooManyPages(bound.most, standing.seconds)


def _leave(_: BaseException | None) -> None:
    if (path_id := g.pop("counted_workspace", None)) is not None:
        bounds.PAGES.leave(path_id)
        switching.end_sharing()


def _check() -> Response | None:
    if request.endpoint is None or not declared(request.endpoint).get("asset"):
        _count()
    if request.endpoint is None:  # 404 or 405: the error page keeps the menu
        g.viewer = _viewer_at(request.path) if current_user.is_authenticated else None
        return None
    access = declared(request.endpoint)
    if access.get("asset"):
        return None
    g.viewer = Viewer(current_user.signed) if current_user.is_authenticated else None
    if g.viewer is not None and (path_id := (request.view_args or {}).pop("workspace", None)) is not None:
        g.viewer = _viewer_in(path_id)
        if not bounds.PAGES.take(path_id):
            raise Overloaded()
        switching.begin_sharing()  # rendering a page with 500 steps takes long
        g.counted_workspace = path_id
    if access.get("public"):
        return None
    if g.viewer is None:
        return _to_sign_in()
    if access.get("staff") and not g.viewer.signed.is_support:
        raise NotFound("There is no such page.")
    if action := access.get("action"):
        _must_be_allowed(action)
        # The larger limit applies only to multipart forms: the cost of parsing other large forms has no bound.
        if access["most_bytes"] and request.mimetype == "multipart/form-data":
            request.max_content_length = access["most_bytes"]
    return None


def _viewer_at(path: str) -> Viewer:
    """Returns the viewer of a page with that path: in its workspace, if the viewer has access to it."""
    parts = path.split("/")
    try:
        return _viewer_in(parts[2]) if len(parts) > 2 and parts[1] == "workspaces" else Viewer(current_user.signed)
    except NotFound:
        return Viewer(current_user.signed)


def _viewer_in(path_id: str) -> Viewer:
    """Returns the viewer in that workspace. Raises NotFound without access to it."""
    signed = current_user.signed
    for membership in signed.memberships:
        if membership.workspace_id == path_id:
            return Viewer(signed, path_id, membership.workspace_name, membership)
    if not signed.is_support or not ids.is_id(path_id, "ws"):
        raise NotFound("There is no such workspace, or you are not a member of it.")
    found = workspaces.find(path_id)
    return Viewer(signed, found.id, found.name, visit=sessions.visit_in(signed.account_id, found.id))


def _must_be_allowed(action: str) -> None:
    who = viewer()
    if who.may(action):
        return
    if who.membership is None and roles.support_may(action, visiting=True):
        if request.method in SAFE_METHODS:
            return  # staff may open every page; its form asks for a visit
        raise VisitRequired
    raise Forbidden.to(action)


def _to_sign_in() -> Response:
    if request.method not in SAFE_METHODS:
        return redirect(url_for("sign_ins.show"), 303)
    return redirect(url_for("sign_ins.show", next=request.full_path.rstrip("?")), 303)
