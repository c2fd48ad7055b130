"""Billing: the plan of a workspace and its usage in the current month."""

from __future__ import annotations

from app.api.authentication import caller
from app.api.parsing.blueprints import Blueprint
from app.api.routes import Document, reads
from app.domain.billing import billing
from app.domain.billing.billing import BillingSchema

blueprint = Blueprint("billing", __name__, description="The plan and the usage.")


@reads(blueprint, "/billing", "billing", BillingSchema)
def show_billing() -> Document:
    """Show the plan, and the workspace's usage and charges in the current month."""
    return billing.represent(caller().workspace_id)
