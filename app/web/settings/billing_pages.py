"""Billing: the plan and its usage; the invoices, each also as a page for printing."""

from __future__ import annotations

from flask import Blueprint, render_template

from app.domain.billing import billing, invoices
from app.domain.billing.plans import PLANS
from app.models.invoices import Invoice
from app.web import lists
from app.web.access import page, workspace_id

blueprint = Blueprint("billing_pages", __name__, url_prefix="/workspaces/<workspace>/settings/billing")


@blueprint.get("")
@page("billing.see")
def show() -> str:
    """Shows the plan, this month's usage beside what the plan includes, and past invoices."""
    return render_template(
        "billing/show.html",
        billing=billing.represent(workspace_id()),
        page=lists.page_of(Invoice.in_workspace(workspace_id()), Invoice),
        represent=invoices.represent,
    )


@blueprint.get("/invoices/<invoice_id>")
@page("billing.see")
def show_invoice(invoice_id: str) -> str:
    """Shows the invoice with its lines."""
    invoice = invoices.represent(Invoice.find(workspace_id(), invoice_id))
    plan = PLANS.get(invoice["plan"])
    return render_template("billing/invoice.html", invoice=invoice, plan=plan.name if plan else invoice["plan"])
