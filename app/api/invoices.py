"""Invoices: one for each past month in which something is owed."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.billing import money
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.billing import invoices
from app.lib.base_schemas import ResponseBody
from app.lib.fields import time
from app.models.invoices import Invoice

blueprint = Blueprint("invoices", __name__, description="What past months cost.")


class LineSchema(ResponseBody):
    description = fields.String(metadata={"example": "Deliveries beyond those included"})
    meter = fields.String(allow_none=True, metadata={"description": "null: the line is for the plan itself."})
    used = fields.Integer(allow_none=True)
    included = fields.Integer(allow_none=True)
    quantity = fields.Integer(metadata={"description": "How much was used beyond what the plan includes."})
    unit_price = money("null: free.", allow_none=True)
    amount = money("Rounded to the cent, half a cent up.")


class InvoiceSchema(ResponseBody):
    id = fields.String()
    number = fields.String(metadata={"example": "BHP-000042"})
    status = fields.String(validate=validate.OneOf(["open"]), metadata={"description": "`open`: not paid yet."})
    plan = fields.String()
    currency = fields.String(metadata={"description": "ISO 4217.", "example": "EUR"})
    period_start = time("The beginning of the month, in UTC.")
    period_end = time("The beginning of the next month.")
    lines = fields.List(fields.Nested(LineSchema))
    total = money("The sum of the lines, before tax.")
    created_at = time("When the invoice was issued.")


@blueprint.route("/workspaces/<workspace>/invoices", methods=["GET"])
@authorize("billing")
@blueprint.arguments(PageQuery)
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
