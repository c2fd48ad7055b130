"""Invoices: one for each past month in which something is owed."""

from __future__ import annotations

from typing import Any

from app.api.authentication import caller
from app.api.lists import PageQuery, page
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, reads
from app.domain.billing import invoices
from app.domain.billing.invoices import InvoiceSchema
from app.models.invoices import Invoice

blueprint = Blueprint("invoices", __name__, description="The bills of past months.")


@reads(blueprint, "/invoices", "billing", InvoiceSchema, PageQuery)
def list_invoices(query: dict[str, Any]) -> Document:
    """List invoices, newest first."""
    return page(Invoice, query, invoices.represent)


@reads(blueprint, "/invoices/<invoice_id>", "billing", InvoiceSchema)
def show_invoice(invoice_id: str) -> Document:
    """Show an invoice."""
    return invoices.represent(Invoice.find(caller().workspace_id, invoice_id))
