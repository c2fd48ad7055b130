"""Sales to contacts."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import ValidationError, fields, post_load

from app.api.lists import PageQuery, page
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept
from app.domain.contacts import sales
from app.domain.contacts.sales import SaleSchema
from app.lib import clock, ids, money
from app.lib.schemas import Formatted, OneOf, RequestBody, about, text, time_field
from app.models.sales import Sale

blueprint = Blueprint("sales", __name__, description="Sales to contacts.")


class SaleCreate(RequestBody):
    """A sale to record. `amount` is a decimal in `currency`."""

    contact_id = fields.String(required=True, metadata=about("Who paid."))
    amount = Formatted(
        money.amount,
        required=True,
        error_messages={"invalid": 'Give the amount as a string, such as "19.90".'},
        metadata=about(
            "A decimal as a string, 0 or more, with at most as many decimal places as its currency has.",
            pattern=f"^{money.PATTERN}$",
            example="19.90",
        ),
    )
    currency = fields.String(
        required=True,
        validate=OneOf(
            sorted(money.DECIMAL_PLACES), error="This is not a currency code (ISO 4217) in capitals, such as EUR."
        ),
        metadata=about("ISO 4217.", example="EUR"),
    )
    reference = text(255, 1, metadata=about("Your own identifier of the sale; unique in the workspace."))
    occurred_at = time_field("by default the time of the request.", load_default=clock.now)

    @post_load
    def in_its_currency(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Returns the amount with its currency's decimal places. Raises ValidationError if it has more."""
        try:
            return data | {"amount": money.in_currency(data["amount"], data["currency"])}
        except ValueError as error:
            raise ValidationError(str(error), "amount") from error


class SaleQuery(PageQuery):
    contact_id = fields.String()
    reference = fields.String()
    occurred_since = time_field("occurred at this time or later. Orders the list by occurred_at.")
    occurred_until = time_field("occurred before this time. Orders the list by occurred_at.")


@reads(blueprint, "/sales", "contacts", SaleSchema, SaleQuery)
def list_sales(query: dict[str, Any]) -> Document:
    """List sales, the latest recorded first; with a time range, the latest occurred first."""
    return page(Sale, query, sales.represent)


@accepts(blueprint, "POST /sales", "contacts", SaleSchema, SaleCreate, made=True)
def create_sale(body: dict[str, Any]) -> Response:
    """Record a sale to a contact."""
    return accept("sales.create", body, ids.new("sal"))


shows(blueprint, "sale", "contacts", SaleSchema, "Show a sale.")
