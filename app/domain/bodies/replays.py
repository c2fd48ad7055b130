"""The bodies that replay or discard many deliveries, and their filters."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from app.domain.bodies.jobs import DiscardBody
from app.domain.deliveries import replay_choices
from app.domain.webhooks import catalogue
from app.domain.work.controlled_batches import MOST_PER_SECOND
from app.lib.schemas import OneOf, Period, RequestBody, StrictBoolean, StrictInteger, about, time_field
from app.outbound.answers import ERROR_CODES

MOST_VALUES = 1_000  # values in one field of a filter; a workspace has no more endpoints


def _any_of(values: fields.Field[Any], description: str) -> fields.List[Any]:
    return fields.List(values, validate=validate.Length(1, MOST_VALUES), metadata=about(description))


class ReplayFilter(Period):
    """Selects the deliveries that match all given fields. At least one field is required."""

    endpoint_ids = _any_of(fields.String(metadata={"example": "whe_01kaj5bd40e6rr3f5y2kq0w9xz"}), "Their endpoints.")
    except_endpoint_ids = _any_of(
        fields.String(metadata={"example": "whe_01kaj5bd40e6rr3f5y2kq0w9xz"}), "All endpoints but these."
    )
    statuses = _any_of(
        fields.String(validate=validate.OneOf(replay_choices.STATUSES)),
        "By default failed and held. Of pending ones, those that wait for their retry become due. Delivered ones go "
        "out as new deliveries.",
    )
    kinds = _any_of(fields.String(validate=OneOf(list(catalogue.EVENT_KINDS))), "Event kinds.")
    error_codes = _any_of(fields.String(validate=validate.OneOf(list(ERROR_CODES))), "Why the last attempt failed.")
    status_codes = _any_of(
        StrictInteger(validate=validate.Range(100, 599), metadata={"example": 503}),
        "The receiver's status in the last attempt.",
    )
    since = time_field("created at this time or later.")
    until = time_field("created before this time.")

    @validates_schema
    def chooses_something(self, data: dict[str, Any], **_: Any) -> None:
        """Raises ValidationError for an empty filter."""
        if not data:
            raise ValidationError("A filter needs at least one field. An empty one would select everything.")


class ReplayCreate(RequestBody):
    WIDENS = True
    filter = fields.Nested(ReplayFilter, required=True, metadata={"example": {"error_codes": ["timeout"]}})
    dry_run = StrictBoolean(metadata=about("Only count the deliveries that would go out."))
    per_second = StrictInteger(
        allow_none=True,
        validate=validate.Range(1, MOST_PER_SECOND),
        metadata=about("The most deliveries that are sent in a second; null, the default: no limit."),
    )
    canary = StrictBoolean(metadata=about("Send one, then wait for `…/continue`."))


class DiscardFilter(ReplayFilter):
    statuses = _any_of(
        fields.String(validate=validate.OneOf(replay_choices.DEFAULT_STATUSES)), "By default failed and held."
    )


class DeliveriesDiscard(DiscardBody):
    WIDENS = True
    filter = fields.Nested(DiscardFilter, required=True, metadata={"example": {"error_codes": ["dns"]}})
    as_of = time_field("only deliveries that had failed or were held by then; by default, by now.")
    dry_run = StrictBoolean(metadata=about("Only count the deliveries that would be discarded."))
