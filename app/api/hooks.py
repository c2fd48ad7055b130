"""Stores providers' webhooks, which arrive at `/hooks/<kind>/<channel>`; workers process them."""

from __future__ import annotations

from contextlib import nullcontext

from flask import Blueprint, Response, request

from app import bounds
from app.api.parsing.bodies import spooled_body
from app.api.request_ids import request_id
from app.api.responses import respond
from app.channels.inbound import BadPayload
from app.domain.channels import arrivals, channels
from app.errors import Malformed

blueprint = Blueprint("hooks", __name__)

# A webhook of this size has a few hundred items, and takes no longer than other requests. Larger ones are processed one
# at a time.
_LARGE_BYTES = 64 * 1024


@blueprint.get("/hooks/<kind>/<channel_id>")
def prove_hook(kind: str, channel_id: str) -> Response:
    """Answers the provider's verification request. Raises NotFound, and InsufficientScope for others."""
    answer = arrivals.prove(arrivals.find_channel(kind, channel_id), request.args.to_dict())
    return Response(answer, mimetype="text/plain", headers={"X-Content-Type-Options": "nosniff"})


@blueprint.post("/hooks/<kind>/<channel_id>")
def take_webhook(kind: str, channel_id: str) -> Response:
    """Responds with 200 once the webhook's content is stored. Safe to repeat.

    Raises NotFound, RequestEntityTooLarge, InsufficientScope for a forged webhook, and Malformed for an unreadable one.
    After Overloaded and TooManyArrivals, the provider sends it again.
    """
    channel = arrivals.find_channel(kind, channel_id)
    with spooled_body(request, channels.kind_of(channel).most_hook_bytes) as spooled:
        spooled.seek(0)
        body = spooled.read()
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        with bounds.alone(channel.workspace_id) if len(body) > _LARGE_BYTES else nullcontext():
            arrivals.take(channel, headers, body, trace_id=request_id())
    except BadPayload as error:
        raise Malformed(f"The webhook is not what the provider documents: {error}") from error
    return respond(200, {})
