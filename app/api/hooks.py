"""Hooks: `/hooks/<kind>/<channel>`, where providers' webhooks arrive. They are stored and answered at once."""

from __future__ import annotations

from contextlib import nullcontext

from flask import Blueprint, Response, request

from app import bounds
from app.api.parsing.bodies import spooled_body
from app.api.request_ids import request_id
from app.api.responses import respond
from app.channels.inbound import BadPayload
from app.domain.channels import channels, hooks
from app.errors import Malformed

blueprint = Blueprint("hooks", __name__)

# Some hundred items: as much as another request takes.
_LARGE_BYTES = 64 * 1024


@blueprint.get("/hooks/<kind>/<channel_id>")
def prove_hook(kind: str, channel_id: str) -> Response:
    """The answer to the provider's question whether the address is ours. Raises NotFound and InsufficientScope."""
    answer = hooks.prove(hooks.find(kind, channel_id), request.args.to_dict())
    return Response(answer, mimetype="text/plain", headers={"X-Content-Type-Options": "nosniff"})


@blueprint.post("/hooks/<kind>/<channel_id>")
def take_webhook(kind: str, channel_id: str) -> Response:
    """200 once what the webhook brings is stored, however often it comes.

    Raises NotFound, RequestEntityTooLarge, InsufficientScope if it is forged, Malformed if it cannot be read. Raises
    Overloaded and TooManyArrivals, after which the provider repeats it.
    """
    channel = hooks.find(kind, channel_id)
    with spooled_body(request, channels.kind_of(channel).most_hook_bytes) as spooled:
        spooled.seek(0)
        body = spooled.read()
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        with bounds.alone(channel.workspace_id) if len(body) > _LARGE_BYTES else nullcontext():
            hooks.take(channel, headers, body, trace_id=request_id())
    except BadPayload as error:
        raise Malformed(f"The webhook is not what the provider documents: {error}") from error
    return respond(200, {})
