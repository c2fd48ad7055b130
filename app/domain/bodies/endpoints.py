"""The bodies that create and change endpoints."""

from __future__ import annotations

from marshmallow import ValidationError, fields, validate, validates

from app.config import settings
from app.domain.webhooks import catalogue, endpoints
from app.lib import addresses
from app.lib.nearest_names import meant
from app.lib.schemas import OneOf, RequestBody, StrictBoolean, StrictInteger, about


class EndpointPatch(RequestBody):
    """The fields of an endpoint to change. None is required."""

    address = fields.String(
        metadata=about(
            "https only, without a user name, at most 2,048 characters, not a private address.",
            format="uri",
            pattern="^https://",
            maxLength=addresses.LONGEST_ADDRESS,
        )
    )
    events = fields.List(
        fields.String(metadata={"enum": ["*", *catalogue.EVENT_KINDS]}),
        validate=validate.Length(1, 100),
        metadata=about("Event kinds, at least one; `*` for all."),
    )
    description = fields.String(allow_none=True, validate=validate.Length(max=500))
    max_per_second = StrictInteger(
        allow_none=True,
        validate=validate.Range(1, endpoints.MOST_PER_SECOND),
        metadata=about("The most deliveries in a second, retries and resends included; null, the default: no limit."),
    )
    ordered = StrictBoolean(
        metadata=about("One delivery at a time, in the order of events; its retries hold back the rest.")
    )

    @validates("address")
    def may_be_dialled(self, value: str, data_key: str) -> None:
        """Raises ValidationError for an address that deliveries are never sent to."""
        if why := addresses.check_address(value, settings().webhook_allowed_networks):
            raise ValidationError(why)

    @validates("events")
    def are_known(self, value: list[str], data_key: str) -> None:
        """Raises ValidationError, by position, for unknown event kinds."""
        unknown = {
            number: [
                f"There is no event kind '{kind}'.{meant(kind, catalogue.EVENT_KINDS)} webhooks/events lists them."
            ]
            for number, kind in enumerate(value)
            if kind != "*" and kind not in catalogue.EVENT_KINDS
        }
        if unknown:
            raise ValidationError(unknown)


class EndpointCreate(EndpointPatch):
    REQUIRED = ("address", "events")


class EndpointTest(RequestBody):
    kind = fields.String(
        required=True,
        validate=OneOf(
            list(catalogue.EVENT_KINDS), error="There is no event kind '{input}'. webhooks/events lists them."
        ),
        metadata=about("The kind whose sample is sent.", example="contact.created"),
    )


class EnableBody(RequestBody):
    release_held = StrictBoolean(metadata=about("Also send the held deliveries; by default false."))
