"""Invoices: one for each past month in which something is owed."""

from __future__ import annotations

from typing import Any

from flask import Response

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.billing import invoices
from app.domain.billing.invoices import InvoiceSchema
from app.models.invoices import Invoice

blueprint = Blueprint("invoices", __name__, description="The bills of past months.")


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
    return respond(200, {"data": invoices.represent(Invoice.find(caller().workspace_id, invoice_id))})
