"""Billing: the plan of a workspace and its usage in the current month."""

from __future__ import annotations

from flask import Response

from app.api.authentication import authorize, caller
from app.api.lists import envelope
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.domain.billing import billing
from app.domain.billing.billing import BillingSchema

blueprint = Blueprint("billing", __name__, description="The plan and the usage.")


@blueprint.route("/workspaces/<workspace>/billing", methods=["GET"])
@authorize("billing")
@blueprint.response(200, envelope(BillingSchema))
def show_billing() -> Response:
    """Show the plan, and the workspace's usage and charges in the current month."""
    return respond(200, {"data": billing.represent(caller().workspace_id)})
