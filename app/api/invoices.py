"""Invoices: one for each past month in which something is owed."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from app.api.authentication import authorize, caller
from app.api.billing import money
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond, time
from app.api.schemas import ResponseBody
from app.domain.billing import invoices
from app.models.invoices import Invoice

blueprint = Blueprint("invoices", __name__, description="The bills of past months.")


class LineSchema(ResponseBody):
    description = fields.String(required=True, metadata={"example": "Deliveries beyond those included"})
    meter = fields.String(
        required=True, allow_none=True, metadata={"description": "null: the line is for the plan itself."}
    )
    used = fields.Integer(required=True, allow_none=True)
    included = fields.Integer(required=True, allow_none=True)
    quantity = fields.Integer(
        required=True, metadata={"description": "How much was used beyond what the plan includes."}
    )
    unit_price = money("null: free.", allow_none=True)
    amount = money("Rounded to the cent, half a cent up.")


class InvoiceSchema(ResponseBody):
    id = fields.String(required=True)
    number = fields.String(required=True, metadata={"example": "BHP-000042"})
    status = fields.String(
        required=True, validate=validate.OneOf(["open"]), metadata={"description": "`open`: not paid yet."}
    )
    plan = fields.String(required=True)
    currency = fields.String(required=True, metadata={"description": "ISO 4217.", "example": "EUR"})
    period_start = time("The beginning of the month, in UTC.")
    period_end = time("The beginning of the next month.")
    lines = fields.List(fields.Nested(LineSchema), required=True)
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
