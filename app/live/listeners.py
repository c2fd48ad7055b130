"""Listeners: who may listen to what, checked when a stream opens and every minute after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app import bounds, metrics
from app.domain.channels import visitors
from app.domain.people import message_access, sessions, tokens
from app.errors import InsufficientScope, NotFound, Unauthenticated
from app.lib import token_format
from app.models.channels import Channel
from app.serving import cookies

_NO_SESSION = "Sign in first, or send a token of the API as 'Authorization: Bearer …'."
_NO_TOKEN = "Send a valid token of the API as 'Authorization: Bearer …'."
_NO_VISITOR = "Send the token of a visitor as 'Authorization: Bearer …'."
_NO_WORKSPACE = "There is no such workspace, or you are not a member of it."
_FOREIGN = "Pages of this origin may not show this chat."


@dataclass(frozen=True, slots=True)
class Pass:
    """The permission of a listener: for all of the workspace, or for a visitor's own conversations in it.

    `actor_id`: who it is: a member or a visit, whose jobs the listener sees, a token or a visitor. `peer`: where
    answers to the visitor go, in the channel. `account_id`: whose session it is; None for a token or a visitor.
    `kinds`: the kinds of resources that the listener sees; None: all.
    """

    workspace_id: str
    actor_id: str
    channel_id: str | None = None
    peer: str | None = None
    account_id: str | None = None
    kinds: frozenset[str] | None = None


@dataclass(slots=True, eq=False)
class Listener:
    """An open stream, on the event loop. `send` and `end` are those of its connection.

    `held`: what is kept back while the listener is sent what it has missed; None: nothing is.
    """

    admitted: Pass
    send: Callable[[bytes], None]
    end: Callable[[], None]
    held: list[bytes] | None = None
    is_over: bool = False

    def receive(self, data: bytes) -> None:
        """Sends it, after what the listener has missed. One for whom too much is held is cut off, and comes back."""
        if self.held is None:
            self.send(data)
        elif sum(map(len, self.held)) + len(data) <= bounds.LIVE_BUFFER.most:
            self.held.append(data)
        else:
            bounds.LIVE_BUFFER.reached()
            metrics.LIVE_DROPPED.labels("slow").inc()
            self.held = []
            self.end()

    def release(self) -> None:
        """Sends what was held, and holds nothing from then on."""
        held, self.held = self.held or [], None
        for data in held:
            self.send(data)


def workspace_credential(headers: Mapping[str, str]) -> str:
    """The token of the API in the Authorization header, or that of a session. Asks no database.

    Raises Unauthenticated.
    """
    return _bearer(headers, token_format.is_token, _NO_TOKEN) if "authorization" in headers else member_token(headers)


def of_workspace(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """The holder of a token of the API if there is an Authorization header, or else a member; raises what they do."""
    return token(headers, query) if "authorization" in headers else member(headers, query)


def token(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """A token that may read messages, for its own workspace.

    Raises Unauthenticated, NotFound for another `workspace` in the query, and InsufficientScope.
    """
    # What was remembered may be older than the revocation because of which the stream is checked.
    caller = tokens.authenticate(workspace_credential(headers), may_remember=False)
    if query.get("workspace", caller.workspace_id) != caller.workspace_id:
        raise NotFound(_NO_WORKSPACE)
    if not caller.may(message_access.MESSAGES):
        raise InsufficientScope("This needs a token with access to inbox, or an unrestricted one.")
    kinds = {"conversation", "message"} | ({"run"} if caller.may(message_access.RUNS) else set())
    return Pass(caller.workspace_id, caller.token_id, kinds=frozenset(kinds))


def member_token(headers: Mapping[str, str]) -> str:
    """The token of the session that the cookie names. Asks no database. Raises Unauthenticated."""
    token = cookies.of_settings().token(headers.get("cookie", ""))
    if token is None:
        raise Unauthenticated(_NO_SESSION)
    return token


def member(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """A member of the workspace, by the cookie of their session; support staff on a visit, too.

    Without `workspace` in the query: the only workspace that they belong to. Raises Unauthenticated, NotFound,
    and InsufficientScope if their role does not include messages.
    """
    # A page that is left open does not count as use of the session.
    signed = sessions.find(member_token(headers), is_use=False)
    if signed is None:
        raise Unauthenticated(_NO_SESSION)
    workspace_id = query.get("workspace")
    if workspace_id is None and len(signed.memberships) == 1:
        workspace_id = signed.memberships[0].workspace_id
    if workspace_id is not None and (membership := signed.membership(workspace_id)):
        message_access.check_member(membership.role)
        return Pass(membership.workspace_id, membership.member_id, account_id=signed.account_id)
    if workspace_id is not None and signed.is_support:
        visit = sessions.visit_in(signed.account_id, workspace_id)
        if visit is not None:
            return Pass(workspace_id, visit.id, account_id=signed.account_id)
    raise NotFound(_NO_WORKSPACE)


def visitor_token(headers: Mapping[str, str]) -> str:
    """The token in the Authorization header. Asks no database. Raises Unauthenticated."""
    return _bearer(headers, visitors.is_token, _NO_VISITOR)


def visitor(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """The visitor of a web chat, by the token in the Authorization header.

    Raises Unauthenticated, and InsufficientScope for a page of an origin that the channel does not allow.
    """
    del query
    found = visitors.authenticate(visitor_token(headers))
    if found is None:
        raise Unauthenticated(_NO_VISITOR)
    origin = headers.get("origin")  # a page of our own sends none
    allowed = Channel.find(found.workspace_id, found.channel_id).settings.get("origins", [])
    if origin is not None and not visitors.is_allowed(allowed, origin):
        raise InsufficientScope(_FOREIGN)
    return Pass(found.workspace_id, found.id, found.channel_id, found.peer)


def _bearer(headers: Mapping[str, str], is_token: Callable[[str], bool], refusal: str) -> str:
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not is_token(credential.strip()):
        raise Unauthenticated(refusal)
    return credential.strip()
