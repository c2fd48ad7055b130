"""Simulations: run a draft for a contact, without side effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app import bounds
from app.domain.automations import http_requests
from app.domain.automations.definitions import programs
from app.domain.automations.interpreter import MOST_UNBROKEN, Interpreter
from app.domain.webhooks import catalogue
from app.domain.work.units import Unit
from app.errors import Fault, Invalid, pointer_to
from app.lib import clock, ids, json
from app.models import sets
from app.models.automations import Automation
from app.models.base import OwnedModel
from app.models.contacts import Contact
from app.models.runs import Run, RunStep
from app.models.sets import Key
from app.outbound import Reason, answered, failed

# Limits of one simulation. Once its paths have MOST_ENTRIES log entries together, no further path is started.
MOST_WAYS, MOST_ENTRIES = 16, 2_000
TIMED_OUT = "timed_out"
_OFFERING = ("send_message", "ask")
_OVERSPENT = "The templates take more than {:,} steps together: too many for one simulation."


class Rehearsal(Unit):
    """A unit without locks that is never written. It contains only the given rows."""

    def __init__(self, given: Iterable[OwnedModel]) -> None:
        super().__init__()
        for row in given:
            self._stored |= dict.fromkeys(sets.keys_of(row), row)

    @property
    def is_long(self) -> bool:
        """Whether templates have used up COMPUTING_PER_SIMULATION."""
        return self.computed > bounds.COMPUTING_PER_SIMULATION.most

    @property
    def now(self) -> datetime:
        """The time of this process; the database is not asked."""
        return clock.now()

    def read(self, keys: Iterable[Key]) -> None:
        """Finds nothing except the given rows."""
        self._stored |= {key: self._stored.get(key) for key in keys}

    def log(self) -> list[RunStep]:
        """Returns the log entries that would have been written."""
        return [row for row in self._appended if isinstance(row, RunStep)]


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """The input of a simulation.

    `event`: the body of the event that starts the run. Each wait for a reply takes the next of `replies` (a text, or
    the `button_id` of a press), and times out when none are left. `responses`: a `status` and a JSON `body`, by step;
    `events`: bodies of events, by step. None makes a wait time out, and so does missing input. With `both_ways`, a
    wait for a missing response or event takes both outcomes. With `stops`, the simulation stops where input is missing.
    """

    variables: Mapping[str, Any] = field(default_factory=dict)
    event: Mapping[str, Any] | None = None
    replies: Sequence[str | Mapping[str, str] | None] = ()
    responses: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    events: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    both_ways: bool = False
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Assumption:
    """The assumed outcome of a wait without input: first `answered` or `happened`, then TIMED_OUT."""

    step: str
    outcome: str


@dataclass(frozen=True, slots=True)
class SimulatedPath:
    """A path that a draft may take: the final run, its log, and the assumptions."""

    run: Run
    log: list[RunStep]
    assumed: list[Assumption]


def simulate(
    automation: Automation, contact: Contact | None, given: SimulationInput
) -> tuple[list[SimulatedPath], bool]:
    """Simulates the draft for the contact; returns paths, and whether there are more.

    `contact`: None for an empty one. There is one path, unless `given` asks for both. Waits end at once. Raises
    Overloaded, and Invalid for input to a step that does not wait for it.
    """
    with bounds.alone(automation.workspace_id):
        simulation = _Simulation(automation, contact or blank_contact(automation.workspace_id), given)
        simulation.check()
        ways = [simulation.take([])]
        while turns := _next(ways[-1].assumed):
            if len(ways) == MOST_WAYS or sum(len(way.log) for way in ways) >= MOST_ENTRIES:
                return ways, True
            ways.append(simulation.take(turns))
        return ways, False


def _next(assumed: Sequence[Assumption]) -> list[str]:
    """Returns the outcomes that the next path starts with; [] if all paths were tried.

    The next path repeats this one up to its last outcome other than TIMED_OUT, and times out there.
    """
    for place in range(len(assumed) - 1, -1, -1):
        if assumed[place].outcome != TIMED_OUT:
            return [*(each.outcome for each in assumed[:place]), TIMED_OUT]
    return []


class _Simulation:
    """Simulates a draft for a contact. All its paths share one limit for computing templates."""

    def __init__(self, automation: Automation, contact: Contact, given: SimulationInput) -> None:
        self._automation, self._contact, self._given = automation, contact, given
        self._program = programs.compile(automation.definition)
        self._computed = 0

    def check(self) -> None:
        """Raises Invalid for input to a step that does not wait for it."""
        faults = [
            Fault(pointer_to(field, name), f"The draft has no step with this 'id' that {does}.")
            for field, kind, does in _GIVEN
            for name in getattr(self._given, field)
            if name not in self._program.steps or self._program.steps[name].kind != kind
        ]
        if faults:
            raise Invalid(*faults)

    def take(self, turns: Sequence[str]) -> SimulatedPath:
        """Returns the path that starts with these outcomes of waits without input.

        Further waits without input get their first outcome.
        """
        automation, assumed, replies = self._automation, list[Assumption](), list(self._given.replies)
        run = run_of_draft(automation, self._contact, self._given.event, variables=self._given.variables)
        unit = Rehearsal([self._contact, run])
        unit.computed = self._computed
        for _ in range(MOST_UNBROKEN):
            interpreter = Interpreter(unit, run, automation.name, is_simulated=True)
            if unit.is_long:
                bounds.COMPUTING_PER_SIMULATION.reached()
                interpreter.fail("limit", _OVERSPENT.format(bounds.COMPUTING_PER_SIMULATION.most))
            else:
                interpreter.go(self._program)
            done = unit.get(Run, run.workspace_id, "id", run.id)
            assert done is not None
            run = done
            if run.is_finished or (self._given.stops and self._is_open(run, replies)):
                break
            run = run.altered(answer=self._answer(run, unit.log(), replies, turns, assumed), is_released=True)
        self._computed = unit.computed
        return SimulatedPath(run, unit.log(), assumed)

    def _is_open(self, run: Run, replies: Sequence[object]) -> bool:
        """Whether the run waits for a reply, response or event that is missing from the input."""
        of_steps = {"response": self._given.responses, "event": self._given.events}
        step = str(run.step)
        return (run.waits_for == "reply" and not replies) or step not in of_steps.get(str(run.waits_for), {step: None})

    def _answer(
        self,
        run: Run,
        log: Sequence[RunStep],
        replies: list[str | Mapping[str, str] | None],
        turns: Sequence[str],
        assumed: list[Assumption],
    ) -> Mapping[str, Any] | None:
        """Returns the answer to the wait; None for a timeout. Consumes `replies`, extends `assumed`."""
        given, step = self._given, str(run.step)
        if run.waits_for == "reply" and replies:
            reply = replies.pop(0)
            return reply if reply is None else {**_reply(log, reply), "message_id": None, "at": None}
        if run.waits_for == "response" and step in given.responses:
            response = given.responses[step]
            if response is None:
                return _came_not(run)
            body = response.get("body", "")
            return _answered(response["status"], body.encode() if isinstance(body, str) else json.dumps(body))
        if run.waits_for == "event" and step in given.events:
            event = given.events[step]
            return event if event is None else {"event": event}
        if given.both_ways and run.waits_for in _FIRST:
            first = _FIRST[run.waits_for]
            outcome = turns[len(assumed)] if len(assumed) < len(turns) else first
            assumed.append(Assumption(step, outcome))
            return self._came(run) if outcome == first else _came_not(run)
        return None

    def _came(self, run: Run) -> Mapping[str, Any]:
        if run.waits_for == "response":
            return _answered(200, b"")
        kind = self._program.steps[str(run.step)].fields["event"]
        return {"event": catalogue.sample(kind, run.workspace_id)}


def _came_not(run: Run) -> Mapping[str, Any] | None:
    late = failed(Reason.LATE, "30 seconds")
    return http_requests.answer_of(late, attempts=3) if run.waits_for == "response" else None


def _reply(log: Sequence[RunStep], given: str | Mapping[str, str]) -> dict[str, str | None]:
    """Returns the reply. The text of a press is the button's label; if not offered, its identifier."""
    if isinstance(given, str):
        return {"text": given, "button_id": None}
    pressed = given["button_id"]
    offers = (each.detail["input"] for each in log if each.kind in _OFFERING and each.detail["input"])
    labels = {each["id"]: each["label"] for offer in offers for each in offer.get("buttons", ())}
    return {"text": labels.get(pressed, pressed), "button_id": pressed}


def _answered(status: int, body: bytes) -> Mapping[str, Any]:
    return http_requests.answer_of(answered(status, body), attempts=1)


def run_of_draft(automation: Automation, contact: Contact, event: Mapping[str, Any] | None, **further: Any) -> Run:
    """Returns a new run of the version that the draft would become. The run is not stored."""
    return Run(
        id=ids.new("run"),
        workspace_id=automation.workspace_id,
        automation_id=automation.id,
        version=automation.latest_version + 1,
        contact_id=contact.id,
        event=event,
        trace_id="",
        created_at=clock.now(),
        **further,
    )


def blank_contact(workspace_id: str) -> Contact:
    """Returns an empty contact, which is not stored."""
    now = clock.now()
    made = {"tags": [], "custom_fields": {}, "created_at": now, "updated_at": now}
    return Contact(id=ids.new("con"), workspace_id=workspace_id, **made)


# The kinds of waits for something that may not happen, and the outcome if it does happen.
_FIRST = {"response": "answered", "event": "happened"}
OUTCOMES = (*_FIRST.values(), TIMED_OUT)
# The members of SimulationInput with input by step: each with the kind of step, and what such a step does.
_GIVEN = (
    ("responses", "http_request", "sends a request"),
    ("events", "wait_for_event", "waits for an event"),
)
