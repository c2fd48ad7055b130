"""Listeners: who may listen to what, checked when a stream opens and every minute after that."""

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
_NO_VISITOR = "Send the token of a visitor as 'Authorization: Bearer …'."
_NO_WORKSPACE = "There is no such workspace, or you are not a member of it."


@dataclass(frozen=True, slots=True)
class Pass:
    """The permission to listen to a workspace, or to a visitor's own conversations in it.

    `actor_id`: a member, a visit, a token or a visitor; the listener sees the jobs of this actor. `channel_id` and
    `peer` name the conversations of a visitor; None for other listeners. `account_id`: the account of the session; None
    for a token or a visitor. `kinds`: the kinds of resources that the listener sees; None for all.
    """

    workspace_id: str
    actor_id: str
    channel_id: str | None = None
    peer: str | None = None
    account_id: str | None = None
    kinds: frozenset[str] | None = None


@dataclass(slots=True, eq=False)
class Listener:
    """An open stream, on the event loop. `send` and `end` belong to its connection.

    `held`: new updates that wait until the listener has been sent the updates it missed; None if nothing is held back.
    """

    admitted: Pass
    send: Callable[[bytes], None]
    end: Callable[[], None]
    held: list[bytes] | None = None
    is_over: bool = False

    def receive(self, data: bytes) -> None:
        """Sends `data`, or holds it back while the listener is still catching up.

        Ends the stream if too much is held back; the listener reconnects.
        """
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
        """Sends everything held back. From then on, nothing is held back."""
        held, self.held = self.held or [], None
        for data in held:
            self.send(data)


def workspace_credential(headers: Mapping[str, str]) -> str:
    """Returns the API token in the Authorization header, or else the session's token.

    Reads no database. Raises Unauthenticated.
    """
    if "authorization" not in headers:
        return member_token(headers)
    return _bearer(headers, token_format.is_token, "Send a valid token of the API as 'Authorization: Bearer …'.")


def of_workspace(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """Admits the holder of an API token, or else a member. Raises the errors of `token` and `member`."""
    return token(headers, query) if "authorization" in headers else member(headers, query)


def token(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """Admits a token that may read messages, for its own workspace.

    Raises Unauthenticated, InsufficientScope, and NotFound if the query names another `workspace`.
    """
    # A cached answer may be older than the revocation that made us check the stream.
    caller = tokens.authenticate(workspace_credential(headers), may_remember=False)
    if query.get("workspace", caller.workspace_id) != caller.workspace_id:
        raise NotFound(_NO_WORKSPACE)
    if not caller.may(message_access.MESSAGES):
        raise InsufficientScope("This needs a token with access to inbox, or an unrestricted one.")
    kinds = {"conversation", "message"} | ({"run"} if caller.may(message_access.RUNS) else set())
    return Pass(caller.workspace_id, caller.token_id, kinds=frozenset(kinds))


def member_token(headers: Mapping[str, str]) -> str:
    """Returns the session's token from the cookie. Reads no database. Raises Unauthenticated."""
    token = cookies.of_settings().token(headers.get("cookie", ""))
    if token is None:
        raise Unauthenticated(_NO_SESSION)
    return token


def member(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """Admits a member of the workspace by their session cookie, or support staff on a visit.

    Without `workspace` in the query, uses the only workspace of the account. Raises Unauthenticated, NotFound if the
    workspace is not theirs or they have several, and InsufficientScope if their role does not include messages.
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
    """Returns the visitor's token from the Authorization header. Raises Unauthenticated."""
    return _bearer(headers, visitors.is_token, _NO_VISITOR)


def visitor(headers: Mapping[str, str], query: Mapping[str, str]) -> Pass:
    """Admits the visitor of a web chat by the token in the Authorization header.

    Raises Unauthenticated, and InsufficientScope for a page of an origin that the channel does not allow.
    """
    del query
    found = visitors.authenticate(visitor_token(headers))
    if found is None:
        raise Unauthenticated(_NO_VISITOR)
    origin = headers.get("origin")  # our own pages send no origin
    allowed = Channel.find(found.workspace_id, found.channel_id).settings.get("origins", [])
    if origin is not None and not visitors.is_allowed(allowed, origin):
        raise InsufficientScope("Pages of this origin may not show this chat.")
    return Pass(found.workspace_id, found.id, found.channel_id, found.peer)


def _bearer(headers: Mapping[str, str], is_token: Callable[[str], bool], refusal: str) -> str:
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not is_token(credential.strip()):
        raise Unauthenticated(refusal)
    return credential.strip()
