"""Simulations of automations that talk."""

from __future__ import annotations

from app.domain.automations.simulations import SimulationInput, simulate
from app.models.automations import Automation
from app.models.contacts import Contact
from tests.app.domain.automations.talking_runs.steps import ASK, REPLY, THANK
from tests.automations import make_automation
from tests.cast import one


def texts(workspace_id: str, contact_id: str | None, *replies: str) -> list[str]:
    """The texts that a run of the automation would send."""
    automation = Automation.get_by_id(make_automation(workspace_id, {"steps": [ASK, REPLY, THANK]}))
    contact = Contact.get_by_id(contact_id) if contact_id else None
    [way], _ = simulate(automation, contact, SimulationInput(replies=replies))
    assert way.run.status == "completed"
    return [entry.detail["input"]["text"] for entry in way.log if entry.kind == "send_message"]


def test_a_simulated_run_gets_the_replies_given_and_sends_nothing(workspace_id: str, contact_id: str) -> None:
    assert texts(workspace_id, contact_id, "Yes") == ["Well?", "Thanks for Yes"]
    assert one("SELECT count(*) FROM messages") == 0


def test_without_replies_a_simulated_wait_times_out(workspace_id: str, contact_id: str) -> None:
    assert texts(workspace_id, contact_id) == ["Well?", "Are you there?"]


def test_a_simulation_needs_no_contact(workspace_id: str) -> None:
    assert texts(workspace_id, None, "Yes") == ["Well?", "Thanks for Yes"]
