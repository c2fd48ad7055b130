"""Billing: the plan, its usage, and the invoices."""

from __future__ import annotations

from flask import Blueprint, render_template

from app.domain.billing import billing, invoices
from app.models.invoices import Invoice
from app.web import lists
from app.web.access import page, workspace_id

blueprint = Blueprint("billing_pages", __name__, url_prefix="/workspaces/<workspace>/settings/billing")


@blueprint.get("")
@page("billing.see")
def show() -> str:
    """Shows the plan, this month's usage beside what the plan includes, and past invoices."""
    shown = lists.page_of(Invoice.in_workspace(workspace_id()), Invoice)
    return render_template(
        "billing/show.html",
        billing=billing.represent(workspace_id()),
        page=shown,
        represent=invoices.represent,
    )
