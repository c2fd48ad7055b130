"""Answers a web chat's script, on pages of the origins that the channel allows.

The requests have no cookies: the Authorization header carries the visitor's token. The first message, or its first
file, creates the visitor. Nothing is stored before that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

from flask import Blueprint, Response, g, request
from marshmallow import fields
from marshmallow.validate import Length, Regexp

from app import bounds
from app.api.parsing.bodies import whole_body
from app.api.request_ids import request_id
from app.api.responses import BareResponse, respond
from app.api.uploads import admitted_file
from app.bounds import Bound, Rates
from app.channels.web_chat import WebChat
from app.config import settings
from app.domain.bodies.objects import object_in
from app.domain.bodies.pointers import load
from app.domain.channels import chats, media, visitors
from app.domain.channels.visitors import Visitor
from app.domain.people import rate_limits
from app.domain.receiving import signed_visitors
from app.errors import InsufficientScope, RateLimited, Unauthenticated
from app.lib.addresses import client_address, network_of
from app.lib.schemas import RequestBody
from app.models.channels import Channel

blueprint = Blueprint("chats", __name__, url_prefix="/chat/<channel_id>")

# Enough for the longest text in escaped JSON, where an emoji takes 12 bytes, and for the other fields.
MOST_BODY_BYTES = 64 * 1024
_without_redis = Rates()
_HEADERS = "authorization, content-type, x-file-name, x-visitor-key"
_LOCALE = Regexp(r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}\Z", error="Give a language tag such as en or pt-BR.")
_CLIENT_ID = Regexp(r"^[A-Za-z0-9_-]{1,64}\Z", error="An id is 1 to 64 characters of A-Z, a-z, 0-9, - and _.")


class User(RequestBody):
    """The visitor's identity in the workspace's own system, signed by the workspace."""

    id = fields.String(required=True, validate=Length(1, visitors.LONGEST_USER))
    signature = fields.String(required=True, validate=Length(1, 128))


class MessageBody(RequestBody):
    """A visitor's message. `key` is required without a token."""

    id = fields.String(required=True, validate=_CLIENT_ID)
    text = fields.String(load_default=None, allow_none=True, validate=Length(max=WebChat.most_characters))
    button_id = fields.String(load_default=None, allow_none=True, validate=Length(1, 64))
    uploads = fields.List(fields.String(validate=Length(1, 64)), load_default=[], validate=Length(max=50))
    locale = fields.String(load_default=None, validate=_LOCALE)
    key = fields.String()
    user = fields.Nested(User)


class IdentifyBody(RequestBody):
    """Identifies the visitor. Without a token, `key` starts a session for a user who wrote before."""

    user = fields.Nested(User, required=True)
    key = fields.String()


class ReadBody(RequestBody):
    """The last message that the visitor has read."""

    message_id = fields.String(required=True, validate=Length(1, 64))


@blueprint.before_request
def admit() -> Response | None:
    """Finds the channel, and checks the page's origin and the rate limit.

    Returns the response to a preflight request; None for any other. Raises NotFound, InsufficientScope and RateLimited.
    """
    assert request.view_args is not None
    g.chat = channel = visitors.find_channel(request.view_args.pop("channel_id"))
    origin = _origin()
    if not visitors.is_allowed(channel.settings.get("origins", []), origin):
        raise InsufficientScope("Pages of this origin may not show this chat. Add the origin to the channel.")
    g.chat_origin = origin
    _count(f"chat-address:{_address()}", bounds.CHAT_REQUESTS_PER_ADDRESS)
    return BareResponse(status=204) if request.method == "OPTIONS" else None


@blueprint.after_request
def allow_origin(response: Response) -> Response:
    """Allows the page to read the response, if its origin is allowed."""
    response.headers["Vary"] = "Origin"
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    if origin := g.get("chat_origin"):
        response.headers["Access-Control-Allow-Origin"] = origin
        response.headers["Access-Control-Expose-Headers"] = "Retry-After"
        if request.method == "OPTIONS":
            response.headers["Access-Control-Allow-Methods"] = "GET, POST"
            response.headers["Access-Control-Allow-Headers"] = _HEADERS
            response.headers["Access-Control-Max-Age"] = "7200"
    return response


@blueprint.route("/messages", methods=["POST", "OPTIONS"], provide_automatic_options=False)
def say() -> Response:
    """Stores a message. The first one creates the visitor, and the response contains its token."""
    body = load(MessageBody(), _body())
    user_id = visitors.check_signature(_channel(), body["user"]) if "user" in body else None
    visitor, token = _visitor_or_new(body.get("key"))
    if user_id is not None:
        signed_visitors.join(visitor, user_id, request_id())
        visitor = visitors.refreshed(visitor)
    chats.say(_channel(), visitor, body["id"], body["text"], body["uploads"], body["locale"], body["button_id"])
    return respond(202, {"id": body["id"], **({"token": token} if token else {})})


@blueprint.get("/messages")
def list_messages() -> Response:
    """Returns the latest messages that the visitor may see, in order; with `before`, earlier ones.

    `unread`: how many of the visitor's messages in the latest conversation no member has read.
    """
    visitor = _visitor()
    messages = chats.history(_channel(), visitor, request.args.get("before"))
    # Counted after the messages are read from the database, so that no unread message is shown as read.
    return respond(200, {"messages": messages, "unread": chats.unread(_channel(), visitor)})


@blueprint.route("/uploads", methods=["POST", "OPTIONS"], provide_automatic_options=False)
def upload() -> Response:
    """Stores a file for a later message. `X-File-Name` is its name, percent-encoded.

    Without a token, creates the visitor for the key in `X-Visitor-Key`, like a first message.
    """
    visitor, token = _visitor_or_new(request.headers.get("X-Visitor-Key"))
    _count(f"chat-uploads:{visitor.id}", bounds.CHAT_UPLOADS_PER_VISITOR)
    name = unquote(request.headers.get("X-File-Name", "")) or None
    with admitted_file(chats.storage_bounds(visitor, _address())) as content:
        kept = media.store(visitor.workspace_id, name, content, visitor_id=visitor.id)
    return respond(201, {**media.represent(kept), **({"token": token} if token else {})})


@blueprint.route("/identify", methods=["POST", "OPTIONS"], provide_automatic_options=False)
def identify() -> Response:
    """Links the visitor to the contact that the signature names.

    Without a token, starts a session if the user has written here before, and returns its token; otherwise does
    nothing.
    """
    body = load(IdentifyBody(), _body())
    user_id = visitors.check_signature(_channel(), body["user"])
    has_token = "Authorization" in request.headers
    if not has_token and not visitors.is_known(_channel(), user_id):
        return respond(200, {"token": None})
    visitor, token = _visitor_or_new(body.get("key"))
    signed_visitors.join(visitor, user_id, request_id())
    return respond(200, {"token": token})


@blueprint.route("/read", methods=["POST", "OPTIONS"], provide_automatic_options=False)
def read() -> Response:
    """Records what the visitor has read."""
    chats.read(_channel(), _visitor(), load(ReadBody(), _body())["message_id"])
    return BareResponse(status=204)


@blueprint.route("/typing", methods=["POST", "OPTIONS"], provide_automatic_options=False)
def tell_typing() -> Response:
    """Shows the members that the visitor is typing."""
    chats.tell_typing(_visitor())
    return BareResponse(status=204)


def _channel() -> Channel:
    found: Channel = g.chat
    return found


def _origin() -> str | None:
    """Returns the page's origin; None if unknown. Browsers omit it from a GET of our own pages."""
    origin = request.headers.get("Origin")
    if origin is None and request.headers.get("Sec-Fetch-Site") == "same-origin":
        own = urlsplit(settings().base_url)
        return f"{own.scheme}://{own.netloc}"
    return origin


def _address() -> str:
    """Returns the client's network, for rate limits."""
    forwarded_for = request.headers.get("X-Forwarded-For", "")
    return network_of(client_address(request.remote_addr or "", forwarded_for, settings().trusted_proxies))


def _visitor() -> Visitor:
    """Returns the token's visitor, and counts the request. Raises Unauthenticated and RateLimited."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    found = visitors.authenticate(token.strip()) if scheme.lower() == "bearer" else None
    if found is None or found.channel_id != _channel().id:
        raise Unauthenticated("This visitor's token is not valid here. Begin a new session.")
    _count(f"chat-visitor:{found.id}", bounds.CHAT_REQUESTS_PER_VISITOR)
    return found


def _visitor_or_new(key: str | None) -> tuple[Visitor, str | None]:
    if "Authorization" in request.headers:
        return _visitor(), None
    _count(f"chat-new:{_address()}", bounds.NEW_VISITORS_PER_ADDRESS)
    bound = bounds.NEW_VISITORS_PER_CHANNEL
    most = _channel().settings.get("new_visitors_per_minute", bound.most)
    _count(f"chat-channel:{_channel().id}", replace(bound, most=most))
    return visitors.issue(_channel(), key or "")


def _count(name: str, bound: Bound) -> None:
    standing = rate_limits.count(name, bound.most)
    if standing is None:
        # While Redis is unavailable, each process counts requests on its own.
        if seconds := _without_redis.take(name, bound):
            raise RateLimited(bound.most, seconds)
    elif not standing.is_within:
        bound.reached()
        raise RateLimited(bound.most, standing.seconds)


def _body() -> dict[str, Any]:
    # Accepts any Content-Type: the check of the origin protects against forged requests.
    return object_in(whole_body(request, MOST_BODY_BYTES))
