"""Listeners: who may listen to what, checked when they come and every minute after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from app.domain import channels, sessions, visitors
from app.errors import InsufficientScope, NotFound, Unauthenticated
from app.web.cookies import Cookies

_NO_SESSION = "Sign in first: this stream is for members of a workspace."
_NO_VISITOR = "Send the token of a visitor as 'Authorization: Bearer …'."
_FOREIGN = "Pages of this origin may not show this chat."


@dataclass(frozen=True, slots=True)
class Pass:
    """What a listener may hear: all of the workspace, or a visitor's own conversations in it.

    `actor_id`: who it is: a member or a visit, whose jobs the listener sees, or a visitor. `peer`: where answers to the
    visitor go, in the channel.
    """

    workspace_id: str
    actor_id: str
    channel_id: str | None = None
    peer: str | None = None


@dataclass(slots=True, eq=False)
class Listener:
    """An open stream. `place`: where it goes on, as its Last-Event-ID says; empty: from now on.

    `send` and `end` are called on the event loop.
    """

    admitted: Pass
    place: str
    send: Callable[[bytes], None]
    end: Callable[[], None]


def member(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """A member of the workspace, by the cookie of their session; support staff on a visit, too.

    Without `workspace` in the query: the only workspace that they belong to. Raises Unauthenticated, NotFound.
    """
    token = _cookies().token(headers.get("cookie", ""))
    # A page that is left open does not count as use of the session.
    signed = sessions.find(token, is_use=False) if token else None
    if signed is None:
        raise Unauthenticated(_NO_SESSION)
    workspace_id = query.get("workspace")
    if workspace_id is None and len(signed.memberships) == 1:
        workspace_id = signed.memberships[0].workspace_id
    if workspace_id is not None and (membership := signed.membership(workspace_id)):
        return Pass(membership.workspace_id, membership.member_id)
    if workspace_id is not None and signed.is_support:
        visit = sessions.visit_in(signed.account_id, workspace_id)
        if visit is not None:
            return Pass(workspace_id, visit.id)
    raise NotFound("There is no such workspace, or you are not a member of it.")


def visitor(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """The visitor of a web chat, by the token in the Authorization header.

    Raises Unauthenticated, and InsufficientScope for a page of an origin that the channel does not allow.
    """
    del query
    scheme, _, token = headers.get("authorization", "").partition(" ")
    found = visitors.authenticate(token.strip()) if scheme.lower() == "bearer" else None
    if found is None:
        raise Unauthenticated(_NO_VISITOR)
    origin = headers.get("origin")  # a page of our own sends none
    allowed = channels.find(found.workspace_id, found.channel_id).settings.get("origins", [])
    if origin is not None and not visitors.is_allowed(allowed, origin):
        raise InsufficientScope(_FOREIGN)
    return Pass(found.workspace_id, found.id, found.channel_id, found.peer)


@cache
def _cookies() -> Cookies:
    return Cookies()
