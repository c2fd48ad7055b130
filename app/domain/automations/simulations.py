"""Simulations: what a run of a draft would do for a contact, without doing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app import bounds
from app.domain.automations import http_requests
from app.domain.automations.definitions import programs
from app.domain.automations.definitions.programs import Program
from app.domain.automations.interpreter import MOST_UNBROKEN, Interpreter
from app.domain.work.units import Unit
from app.errors import Fault, Invalid, pointer_to
from app.lib import clock, ids, json
from app.models import sets
from app.models.automations import Automation
from app.models.base import OwnedModel
from app.models.contacts import Contact
from app.models.runs import Run, RunStep
from app.models.sets import Key
from app.outbound import answered

_ASKING = ("send_message", "ask")
_OVERSPENT = "The templates take more than {:,} steps together: too many for one simulation."


class Rehearsal(Unit):
    """A unit that locks nothing and is never written: it has the rows given, and for the rest there is nothing."""

    def __init__(self, given: Iterable[OwnedModel]) -> None:
        super().__init__()
        for row in given:
            self._stored |= dict.fromkeys(sets.keys_of(row), row)

    @property
    def is_long(self) -> bool:
        """Whether its templates have taken as many steps as those of one simulation may."""
        return self.computed > bounds.COMPUTING_PER_SIMULATION.most

    @property
    def now(self) -> datetime:
        """This process's time."""
        return clock.now()

    def read(self, keys: Iterable[Key]) -> None:
        """Finds nothing besides what was given."""
        self._stored |= {key: self._stored.get(key) for key in keys}

    def log(self) -> list[RunStep]:
        """The entries of logs that would have been written."""
        return [row for row in self._appended if isinstance(row, RunStep)]


@dataclass(frozen=True, slots=True)
class Given:
    """What a simulation is given.

    `event` is the body of the event that starts the run. Each wait for a reply gets the next of `replies`, a text or
    the `button_id` of a press, and times out when there is none left. `responses` are a `status` and a `body`, any
    JSON, by the step that sends a request.
    """

    variables: Mapping[str, Any] = field(default_factory=dict)
    event: Mapping[str, Any] | None = None
    replies: Sequence[str | Mapping[str, str]] = ()
    responses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def simulate(automation: Automation, contact: Contact | None, given: Given) -> tuple[Run, list[RunStep]]:
    """Runs the automation's draft for the contact (None: one without data); returns the run as it ended, and its log.

    Waits are over at once. Raises Invalid for a response to a step that sends no request, and Overloaded.
    """
    with bounds.alone(automation.workspace_id):
        return _simulate(automation, contact, given)


def _simulate(automation: Automation, contact: Contact | None, given: Given) -> tuple[Run, list[RunStep]]:
    program, replies = programs.compile(automation.definition), list(given.replies)
    _check_responses(program, given)
    contact = contact or _nobody(automation.workspace_id)
    run = Run(
        id=ids.new("run"),
        workspace_id=automation.workspace_id,
        automation_id=automation.id,
        version=automation.latest_version + 1,
        contact_id=contact.id,
        variables=given.variables,
        event=given.event,
        trace_id="",
        created_at=clock.now(),
    )
    unit = Rehearsal([contact, run])
    for _ in range(MOST_UNBROKEN):
        interpreter = Interpreter(unit, run, automation.name, is_simulated=True)
        if unit.is_long:
            bounds.COMPUTING_PER_SIMULATION.reached()
            interpreter.fail("limit", _OVERSPENT.format(bounds.COMPUTING_PER_SIMULATION.most))
        else:
            interpreter.go(program)
        done = unit.get(Run, run.workspace_id, "id", run.id)
        assert done is not None
        run = done
        if run.is_finished:
            break
        run = run.altered(answer=_answer(run, unit.log(), replies, given.responses), is_released=True)
    return run, unit.log()


def _check_responses(program: Program, given: Given) -> None:
    faults = [
        Fault(pointer_to("responses", name), "The draft has no step with this 'id' that sends a request.")
        for name in given.responses
        if name not in program.steps or program.steps[name].kind != "http_request"
    ]
    if faults:
        raise Invalid(*faults)


def _answer(
    run: Run,
    log: Sequence[RunStep],
    replies: list[str | Mapping[str, str]],
    responses: Mapping[str, Mapping[str, Any]],
) -> Mapping[str, Any] | None:
    if run.waits_for == "reply" and replies:
        return {**_reply(log, replies.pop(0)), "message_id": None, "at": None}
    if run.waits_for == "response" and (response := responses.get(str(run.step))) is not None:
        body = response.get("body", "")
        text = body.encode() if isinstance(body, str) else json.dumps(body)
        return http_requests.answer_of(answered(response["status"], text), attempts=1)
    return None


def _reply(log: Sequence[RunStep], given: str | Mapping[str, str]) -> dict[str, str | None]:
    """The reply; the text of a press is the button's label, or its identifier if no message offers it."""
    if isinstance(given, str):
        return {"text": given, "button_id": None}
    pressed = given["button_id"]
    offers = (each.detail["input"] for each in log if each.kind in _ASKING and each.detail["input"])
    labels = {each["id"]: each["label"] for offer in offers for each in offer.get("buttons", ())}
    return {"text": labels.get(pressed, pressed), "button_id": pressed}


def _nobody(workspace_id: str) -> Contact:
    now = clock.now()
    made = {"tags": [], "custom_fields": {}, "created_at": now, "updated_at": now}
    return Contact(id=ids.new("con"), workspace_id=workspace_id, **made)
