"""Runs: starting, reading and controlling them."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, ClassVar

from flask import Response
from marshmallow import ValidationError, fields, validate

from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope, page_of
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.routes import Document, accepts, reads
from app.api.writes import accept
from app.domain.automations import runs, simulations
from app.domain.automations.runs import LogEntrySchema
from app.domain.automations.simulations import SimulatedPath, SimulationInput
from app.domain.automations.steps.start_automation import MOST_BYTES, MOST_VARIABLES
from app.domain.channels import buttons
from app.domain.contacts import contacts
from app.domain.conversations.messages import MOST_CHARACTERS
from app.domain.people import message_access
from app.domain.triggers import run_states
from app.domain.triggers.run_states import EXAMPLE_VARIABLES, FailureSchema, RunSchema
from app.lib import ids, json
from app.lib.schemas import RequestBody, ResponseBody, StrictBoolean, StrictInteger, about
from app.models.automations import Automation
from app.models.runs import STATUSES, Run, RunStep

blueprint = Blueprint("runs", __name__, description="Contacts on their way through automations.")


def is_small(value: dict[str, Any]) -> None:
    """Raises ValidationError if the variables are too large in total."""
    if len(json.dumps(value)) > MOST_BYTES:
        raise ValidationError(f"The variables have at most {MOST_BYTES:,} bytes as JSON.")


def variables() -> fields.Dict:
    """Returns the field for a run's variables."""
    return fields.Dict(
        keys=fields.String(validate=validate.Length(1, 100)),
        values=fields.Raw(allow_none=True),
        validate=[validate.Length(max=MOST_VARIABLES), is_small],
        metadata=about(
            f"Any JSON by names of 1 to 100 characters, {MOST_BYTES // 1024} KiB in all. Templates read "
            "them as `trigger.variables.<name>`.",
            example=EXAMPLE_VARIABLES,
        ),
    )


class StartBody(RequestBody):
    """The contact to start an automation for, and the run's variables."""

    contact_id = fields.String(required=True, metadata=about("The contact to run it for."))
    variables = variables()


class ReplayBody(RequestBody):
    from_step = fields.String(
        validate=validate.Length(1),
        metadata=about(
            "The step to begin with, whose predecessors' results are kept; by default the first.", example="mark"
        ),
    )


class RunWithStepsSchema(RunSchema):
    steps = fields.List(
        fields.Nested(LogEntrySchema), metadata=about(f"Its log, oldest first: the last {runs.LONGEST_LOG:,} entries.")
    )


class SimulatedResponseBody(RequestBody):
    status = StrictInteger(
        required=True, validate=validate.Range(100, 599), metadata=about("The status of the response.", example=200)
    )
    body = fields.Raw(allow_none=True, metadata=about("Any JSON, or text.", example={"approved": True}))


class ReplyField(fields.Field[Any]):
    """A reply in a simulation: a text, or a pressed button."""

    described: ClassVar[list[dict[str, Any]]] = [
        {"type": "string", "maxLength": MOST_CHARACTERS},
        {
            "type": "object",
            "required": ["button_id"],
            "additionalProperties": False,
            "properties": {"button_id": {"type": "string", "pattern": buttons.ID}},
        },
    ]

    def _deserialize(self, value: Any, *args: Any, **options: Any) -> Any:
        if isinstance(value, str) and len(value) <= MOST_CHARACTERS:
            return value
        pressed = value["button_id"] if isinstance(value, dict) and list(value) == ["button_id"] else None
        if isinstance(pressed, str) and re.fullmatch(buttons.ID, pressed):
            return value
        raise ValidationError('Give a text, or a button such as {"button_id": "yes"}.')


class SimulationBody(RequestBody):
    contact_id = fields.String(metadata=about("The contact to run it for; by default one without data."))
    variables = variables()
    replies = fields.List(
        ReplyField(metadata={"anyOf": ReplyField.described}),
        validate=validate.Length(max=100),
        metadata=about(
            "The contact's replies, one for each wait: a text, or the button that is pressed. Further waits time out.",
            example=["Yes", {"button_id": "yes"}],
        ),
    )
    event = fields.Dict(
        metadata=about("The event that starts the run, in the form of a delivery's body: `trigger.event` names it.")
    )
    responses = fields.Dict(
        keys=fields.String(),
        values=fields.Nested(SimulatedResponseBody),
        metadata=about("The responses to requests, by the `id` of the step.", example={"call": {"status": 200}}),
    )
    events = fields.Dict(
        keys=fields.String(),
        values=fields.Dict(),
        metadata=about(
            "The events that are waited for, by the `id` of the step, each in the form of a delivery's body.",
            example={"paid": {"kind": "sale.recorded", "data": {}}},
        ),
    )
    both_ways = StrictBoolean(
        metadata=about(
            "Where a response or an event is missing: go on as if it had come, and as if it had not. Without it, a"
            " request has no result, and an event does not come.",
            example=True,
        )
    )


class AssumptionSchema(ResponseBody):
    step = fields.String(metadata=about("The step that waits.", example="call"))
    outcome = fields.String(
        validate=validate.OneOf(simulations.OUTCOMES),
        metadata=about("`answered` (200, without a body), `happened` (a sample) or `timed_out`.", example="timed_out"),
    )


class WaySchema(ResponseBody):
    status = fields.String(validate=validate.OneOf(STATUSES))
    failure = fields.Nested(FailureSchema, allow_none=True)
    steps = fields.List(fields.Nested(LogEntrySchema))
    assumed = fields.List(fields.Nested(AssumptionSchema), metadata=about("What it rests on, in order."))


class SimulationSchema(ResponseBody):
    OPTIONAL = ("ways", "has_more_ways")

    status = fields.String(validate=validate.OneOf(STATUSES))
    failure = fields.Nested(FailureSchema, allow_none=True)
    steps = fields.List(fields.Nested(LogEntrySchema))
    ways = fields.List(fields.Nested(WaySchema), metadata=about("With `both_ways`: all ways; the first is also above."))
    has_more_ways = fields.Boolean(
        metadata=about(
            f"With `both_ways`: whether there are more ways than {simulations.MOST_WAYS}, or very long ones."
        )
    )


class RunsOfAutomationQuery(PageQuery):
    contact_id = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))


class RunQuery(RunsOfAutomationQuery):
    automation_id = fields.String()


@accepts(blueprint, "POST /automations/<automation_id>/start", message_access.RUNS, RunSchema, StartBody, made=True)
def start_automation(body: dict[str, Any], automation_id: str) -> Response:
    """Start a published automation for a contact. The run in the response can be read at once.

    If `reentry` keeps the contact out, the write fails with `conflict`; `conflicting_run_id` is the earlier run.
    """
    return accept("automations.start", body | {"automation_id": automation_id}, ids.new("run"))


@blueprint.route("/workspaces/<workspace>/automations/<automation_id>/simulate", methods=["POST"])
@authorize(message_access.RUNS)
@blueprint.arguments(SimulationBody, required=False)
@blueprint.response(200, envelope(SimulationSchema))
def simulate_automation(body: dict[str, Any], automation_id: str) -> Response:
    """Run the draft without side effects, and show the run's log.

    Waits end at once, and no request is sent.
    """
    workspace_id = caller().workspace_id
    automation = Automation.find(workspace_id, automation_id)
    contact = contacts.find_named(workspace_id, body["contact_id"]) if "contact_id" in body else None
    given = SimulationInput(**{name: value for name, value in body.items() if name != "contact_id"})
    ways, has_more = simulations.simulate(automation, contact, given)
    found = [_represent_way(way) for way in ways]
    first = {name: found[0][name] for name in ("status", "failure", "steps")}
    return respond(200, {"data": {**first, "ways": found, "has_more_ways": has_more} if given.both_ways else first})


@reads(blueprint, "/automations/<automation_id>/runs", message_access.RUNS, RunSchema, RunsOfAutomationQuery)
def list_runs_of_automation(query: dict[str, Any], automation_id: str) -> Document:
    """List the runs of an automation, newest first."""
    automation = Automation.find(caller().workspace_id, automation_id)
    return _page(query | {"automation_id": automation.id})


@reads(blueprint, "/runs", message_access.RUNS, RunSchema, RunQuery)
def list_runs(query: dict[str, Any]) -> Document:
    """List runs, newest first."""
    return _page(query)


@reads(blueprint, "/runs/<run_id>", message_access.RUNS, RunWithStepsSchema)
def show_run(run_id: str) -> Document:
    """Show a run with its log. It exists as soon as its start is accepted."""
    run = runs.find(caller().workspace_id, run_id)
    steps = [runs.represent_step(step) for step in RunStep.latest(run, runs.LONGEST_LOG)]
    return {**run_states.represent(run), "steps": steps}


@accepts(blueprint, "POST /runs/<run_id>/cancel", message_access.RUNS, RunSchema)
def cancel_run(run_id: str) -> Response:
    """Cancel a run; nothing changes if it is already cancelled."""
    run = runs.find(caller().workspace_id, run_id)
    return accept("runs.cancel", {"contact_id": run.contact_id}, run.id, check=partial(runs.refuse_ended, run))


@accepts(blueprint, "POST /runs/<run_id>/resume", message_access.RUNS, RunSchema)
def resume_run(run_id: str) -> Response:
    """Resume a run that is held by a member's message."""
    run = runs.find(caller().workspace_id, run_id)
    return accept("runs.resume", {"contact_id": run.contact_id}, run.id)


@accepts(blueprint, "POST /runs/<run_id>/replay", message_access.RUNS, RunSchema, ReplayBody, made=True, required=False)
def replay_run(body: dict[str, Any], run_id: str) -> Response:
    """Start a copy of an ended run, with its version, contact and variables."""
    run = runs.find(caller().workspace_id, run_id)
    payload = body | {"run_id": run.id, "contact_id": run.contact_id, "automation_id": run.automation_id}
    check = partial(runs.check_step, run, body.get("from_step"))
    return accept("runs.replay", payload, ids.new("run"), check)


def _represent_way(way: SimulatedPath) -> dict[str, Any]:
    steps = [runs.represent_step(step) for step in way.log]
    assumed = [AssumptionSchema.of(each) for each in way.assumed]
    return WaySchema.of(way.run, steps=steps, assumed=assumed)


def _page(query: dict[str, Any]) -> Document:
    return page_of(partial(Run.newest, caller().workspace_id, query), query, run_states.represent)
