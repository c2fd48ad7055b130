"""Billing: the plan, what is used of it, and the invoices."""

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
    """The plan, this month's usage beside the amounts that it includes, and the invoices of past months."""
    shown = lists.page_of(Invoice.in_workspace(workspace_id()), Invoice)
    return render_template(
        "billing/show.html",
        billing=billing.represent(workspace_id()),
        page=shown,
        represent=invoices.represent,
    )
