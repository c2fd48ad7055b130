"""`stop`: ends the run."""

from __future__ import annotations

from app.domain.automations.steps.base import Kind, Moment, Outcome, Stop


def begin(moment: Moment) -> Outcome:
    """Ends the run as completed."""
    return Stop("The run was stopped.")


KIND = Kind(
    description="Ends the run, as completed, wherever in the definition it stands.",
    fields={},
    begin=begin,
    example={"kind": "stop"},
)
