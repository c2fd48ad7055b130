"""Automations for tests: published without the API, and what became of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.database import rows
from app.domain.automations import executions
from app.domain.automations.definitions import listened_keys
from app.domain.triggers import automation_listeners
from app.lib import ids
from app.models.automations import Automation, AutomationVersion
from app.models.runs import Run


def make_automation(workspace_id: str, definition: Mapping[str, Any] | None = None, **fields: Any) -> str:
    """Publishes an automation with this definition as version 1, and returns its identifier.

    Without a definition it has one `stop` step and no trigger. `fields` are columns of the automation.
    """
    definition = {"triggers": [], "steps": [{"id": "end", "kind": "stop"}]} | dict(definition or {})
    automation = Automation(
        **{
            **{"id": ids.new("aut"), "workspace_id": workspace_id, "name": "Welcome", "status": "published"},
            **{"version": 1, "latest_version": 1, "definition": definition, "exits": []},
            **fields,
        }
    )
    Automation.insert(automation.__data__).execute()
    AutomationVersion.insert(
        automation_id=automation.id, number=1, workspace_id=workspace_id, definition=definition
    ).execute()
    automation_listeners.listen(
        workspace_id, automation.id, listened_keys(definition, automation.exits, automation.goal)
    )
    return str(automation.id)


def carry_on(workspace_id: str) -> None:
    """Carries on the workspace's runs until none is due, as a worker does."""
    while rows("SELECT 1 FROM runs WHERE workspace_id = %s AND due_at <= now()", (workspace_id,)):
        executions.work(workspace_id)


def runs_of(contact_id: str) -> list[Run]:
    """The contact's runs, oldest first."""
    return list(Run.select().where(Run.contact_id == contact_id).order_by(Run.id))


def deltas() -> dict[tuple[str, str], int]:
    """What has been counted by automation and not yet folded; without what adds up to nothing."""
    counted = "SELECT automation_id, key, sum(amount)::int FROM automation_deltas WHERE step = '' GROUP BY 1, 2"
    found = rows(counted)
    return {(automation_id, key): amount for automation_id, key, amount in found if amount}
