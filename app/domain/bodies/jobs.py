"""The body that discards failed jobs."""

from __future__ import annotations

from marshmallow import fields, validate

from app.lib.schemas import RequestBody, about

WHY_DISCARDED = "The customer corrected it."  # the example in the API's documentation


class DiscardBody(RequestBody):
    """The reason for discarding one or several failed jobs."""

    reason = fields.String(
        required=True,
        validate=validate.Length(1, 500),
        metadata=about("Why it need not be done any more.", example=WHY_DISCARDED),
    )
