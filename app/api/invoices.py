"""Invoices: one for each month that is over and costs something."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.billing import money
from app.api.lists import PageQuery, collection, envelope, page
from app.api.parsing import Blueprint, Schema
from app.api.responses import respond, time
from app.domain import invoices
from app.models.invoices import Invoice

blueprint = Blueprint("invoices", __name__, description="What months that are over cost.")


class LineSchema(Schema):
    description = fields.String(required=True, metadata={"example": "Deliveries beyond those included"})
    meter = fields.String(required=True, allow_none=True, metadata={"description": "null: the plan itself."})
    used = fields.Integer(required=True, allow_none=True)
    included = fields.Integer(required=True, allow_none=True)
    quantity = fields.Integer(required=True, metadata={"description": "What was used beyond what is included."})
    unit_price = money("null: more costs nothing.", allow_none=True)
    amount = money("Rounded to the cent, half a cent up.")


class InvoiceSchema(Schema):
    id = fields.String(required=True)
    number = fields.String(required=True, metadata={"example": "BHP-000042"})
    status = fields.String(required=True, validate=validate.OneOf(["open"]), metadata={"description": "It is owed."})
    plan = fields.String(required=True)
    currency = fields.String(required=True, metadata={"description": "ISO 4217.", "example": "EUR"})
    period_start = time("The beginning of the month, in UTC.")
    period_end = time("The beginning of the next.")
    lines = fields.List(fields.Nested(LineSchema), required=True)
    total = money("The sum of the lines, before tax.")
    created_at = time("When the month was closed.")


@collection(blueprint, "/invoices")
@authorize("billing")
@blueprint.arguments(PageQuery, location="query")
@blueprint.response(200, envelope(InvoiceSchema, many=True))
def list_invoices(query: dict[str, Any]) -> Response:
    """List invoices, newest first."""
    found = Invoice.in_workspace(caller().workspace_id)
    return respond(200, page(found, Invoice, query, invoices.represent))


@blueprint.route("/workspaces/<workspace>/invoices/<invoice_id>", methods=["GET"])
@authorize("billing")
@blueprint.response(200, envelope(InvoiceSchema))
def show_invoice(invoice_id: str) -> Response:
    """Show an invoice."""
    return respond(200, {"data": invoices.represent(invoices.find(caller().workspace_id, invoice_id))})
