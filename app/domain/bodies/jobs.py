"""The body that discards failed jobs, and the reason that every discard needs."""

from __future__ import annotations

from marshmallow import fields, validate

from app.lib.schemas import NOT_BLANK, RequestBody, about

LONGEST_REASON = 500
WHY_DISCARDED = "The customer corrected it."  # the example in the API's documentation


class DiscardBody(RequestBody):
    """The reason for discarding failed jobs or deliveries."""

    reason = fields.String(
        required=True,
        validate=[validate.Length(max=LONGEST_REASON), validate.Regexp(NOT_BLANK, error="Give a reason.")],
        metadata=about("Why it need not be done any more.", example=WHY_DISCARDED),
    )
