"""Access: who looks at a page, and who may. Every route declares it with one of the decorators below."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
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
# Writes of a workspace are delayed if the oldest has waited for that long. A form waits no longer for its own.
DELAYED_SECONDS = 5.0


class Forbidden(BellhopError):
    """The role of this member does not include the action."""

    slug = "insufficient-scope"
    detail = "Your role in this workspace does not include this. Ask an owner of the workspace."

    @classmethod
    def to(cls, action: str) -> Forbidden:
        """The refusal of that action, which names the roles that include it."""
        allowed = " or ".join(role for role in roles.ROLES if roles.may(role, action))
        return cls(f"This needs the role {allowed} in this workspace. {_asks(viewer())}")


class VisitRequired(BellhopError):
    """A member of staff changes something without having said why."""

    slug = "insufficient-scope"
    detail = "First say why you change something in this workspace: give a reason and a ticket number."


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person who looks at the page. In a workspace: by a membership, or as staff, perhaps on a visit."""

    signed: Signed
    workspace_id: str | None = None
    workspace_name: str | None = None
    membership: Membership | None = None
    visit: Visit | None = None

    is_active = is_authenticated = True  # for Flask-Login
    is_anonymous = False

    def get_id(self) -> str:
        """For Flask-Login, which keeps the session's token by itself (see `sign_in`)."""
        return str(session.get("_user_id"))

    @property
    def actor_id(self) -> str:
        """The identifier under which the viewer's changes are recorded."""
        if self.membership is not None:
            return self.membership.member_id
        assert self.visit is not None
        return self.visit.id

    @property
    def is_delayed(self) -> bool:
        """Whether changes of the workspace are applied late: pages say so, and forms do not wait."""
        return self.signed.delay_seconds >= DELAYED_SECONDS

    def may(self, action: str) -> bool:
        """Whether the viewer may do this in the workspace now. Staff need a visit for what changes something."""
        if self.membership is not None:
            return roles.may(self.membership.role, action)
        return self.signed.is_support and roles.support_may(action, visiting=self.visit is not None)


class _SessionToken:
    """The token of the session, as Flask-Login stores it at the sign-in."""

    is_active = is_authenticated = True

    def __init__(self, token: str) -> None:
        self._token = token

    def get_id(self) -> str:
        return self._token


def _asks(who: Viewer) -> str:
    """A sentence on whom the viewer can ask for a role."""
    if who.membership is None:
        return "Support staff cannot do it, not even during a visit."
    return f"Yours is {who.membership.role}. An owner can change it: see Members."


def public(view: View) -> View:
    """Declares a page for everybody, signed in or not."""
    return _declare(view, public=True)


def asset(view: View) -> View:
    """Declares a file that is the same for everybody, so that no session is looked up."""
    return _declare(view, public=True, asset=True)


def signed_in(view: View) -> View:
    """Declares a page for everybody who is signed in, about no workspace."""
    return _declare(view)


def staff(view: View) -> View:
    """Declares a page for support staff, about all workspaces."""
    return _declare(view, staff=True)


def page(action: str, most_bytes: int | None = None) -> Callable[[View], View]:
    """Declares a page about the workspace in its path, for those who may do `action`, a key of `roles.ACTIONS`.

    The view does not get `workspace` as an argument: it is `viewer().workspace_id`. `most_bytes`: how large a form
    with a file may be, if it is larger than others.
    """
    if action not in roles.ACTIONS:
        raise ValueError(f"{action} is not in the matrix of roles")
    return lambda view: _declare(view, action=action, most_bytes=most_bytes)


def declared(endpoint: str) -> dict[str, Any]:
    """The access that the view of that endpoint declares. A view without a declaration is an error."""
    found: dict[str, Any] = vars(current_app.view_functions[endpoint])["access"]
    return found


def viewer() -> Viewer:
    """The person who looks at this page. Only where someone is signed in."""
    found: Viewer = g.viewer
    return found


def workspace_id() -> str:
    """The workspace that this page is about."""
    found = viewer().workspace_id
    assert found is not None
    return found


def sign_in(token: str) -> None:
    """Makes this the browser's session. Whatever the browser sent before is dropped, so nobody can fix a session."""
    session.clear()
    session.permanent = True
    login_user(_SessionToken(token))


def sign_out() -> None:
    """Forgets the browser's session. The session itself is ended by `sessions.end`."""
    logout_user()
    session.clear()


def install(pages: Flask) -> None:
    """Checks every request before its view: 404 for a stranger to the workspace, 403 without the role.

    429 for a session that asks too much, and if too many requests of the workspace are under way.
    """
    manager = LoginManager(pages)
    manager.session_protection = None  # a session is a row that can be ended; addresses change on the way to work
    manager.user_loader(_load)
    pages.before_request(_check)
    pages.teardown_request(_leave)
    pages.context_processor(lambda: {"viewer": g.get("viewer")})


def _declare(view: View, **access: Any) -> View:
    view.access = access  # type: ignore[attr-defined]
    return view


def _load(token: str) -> Viewer | None:
    asked_for = str((request.view_args or {}).get("workspace"))
    # What a page asks that nobody looks at keeps no session, and nobody here.
    is_use = "background" not in request.args
    signed = sessions.find(token, asked_for if ids.is_id(asked_for, "ws") else None, is_use=is_use)
    return Viewer(signed) if signed else None


def _count() -> None:
    """Counts the request to the session that the cookie names. Raises TooManyPages."""
    token = session.get("_user_id")
    if token is None:
        return
    bound, key = bounds.PAGES_PER_SESSION, f"pages:{hashlib.sha256(str(token).encode()).hexdigest()}"
    standing = rate_limits.count(key, bound.most)
    if standing is None:  # Redis is away
        if seconds := _RATES.take(key, bound):
            raise TooManyPages(bound.most, seconds)
    elif not standing.is_within:
        bound.reached()
        raise TooManyPages(bound.most, standing.seconds)


def _leave(_: BaseException | None) -> None:
    if (place := g.pop("place", None)) is not None:
        bounds.PAGES.leave(place)
        switching.end_sharing()


def _check() -> Response | None:
    if request.endpoint is None or not declared(request.endpoint).get("asset"):
        _count()
    if request.endpoint is None:  # 404 or 405: the page of the error keeps the menu
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
        switching.begin_sharing()  # a page may draw 500 steps
        g.place = path_id
    if access.get("public"):
        return None
    if g.viewer is None:
        return _to_sign_in()
    if access.get("staff") and not g.viewer.signed.is_support:
        raise NotFound("There is no such page.")
    if action := access.get("action"):
        _must_be_allowed(action)
        # Nothing bounds what the fields of any other large form cost.
        if access["most_bytes"] and request.mimetype == "multipart/form-data":
            request.max_content_length = access["most_bytes"]
    return None


def _viewer_at(path: str) -> Viewer:
    """The viewer in the workspace that the path begins with, if it is theirs; otherwise in none."""
    parts = path.split("/")
    try:
        return _viewer_in(parts[2]) if len(parts) > 2 and parts[1] == "workspaces" else Viewer(current_user.signed)
    except NotFound:
        return Viewer(current_user.signed)


def _viewer_in(path_id: str) -> Viewer:
    """The viewer in that workspace. Raises NotFound if it is not theirs."""
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
            return  # staff see every page; its form asks for the visit
        raise VisitRequired
    raise Forbidden.to(action)


def _to_sign_in() -> Response:
    if request.method not in SAFE_METHODS:
        return redirect(url_for("sign_ins.show"), 303)
    return redirect(url_for("sign_ins.show", next=request.full_path.rstrip("?")), 303)
