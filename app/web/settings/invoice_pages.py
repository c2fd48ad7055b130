"""An invoice as a page for printing."""

from __future__ import annotations

from flask import Blueprint, render_template

from app.domain.billing import invoices
from app.domain.billing.plans import PLANS
from app.models.invoices import Invoice
from app.web.access import page, workspace_id

blueprint = Blueprint("invoice_pages", __name__, url_prefix="/workspaces/<workspace>/settings/billing/invoices")


@blueprint.get("/<invoice_id>")
@page("billing.see")
def show(invoice_id: str) -> str:
    """Shows the invoice with its lines."""
    invoice = invoices.represent(Invoice.find(workspace_id(), invoice_id))
    plan = PLANS.get(invoice["plan"])
    return render_template("billing/invoice.html", invoice=invoice, plan=plan.name if plan else invoice["plan"])
