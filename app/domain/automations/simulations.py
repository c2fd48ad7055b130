"""Simulations: what a run of a draft would do for a contact, without doing it."""

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

# Of one simulation. Another way is only begun as long as all of them together have fewer entries in their logs.
MOST_WAYS, MOST_ENTRIES = 16, 2_000
TIMED_OUT = "timed_out"
_OFFERING = ("send_message", "ask")
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
    JSON, by the step that sends a request; `events` the bodies of events, by the step that waits for one. None among
    them is a wait that times out. Where one is missing, a simulation goes `both_ways`, or `stops` with a waiting run.
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
    """The outcome of a wait that nothing was given for: first `answered` or `happened`, then TIMED_OUT."""

    step: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Way:
    """One way that a draft may take: the run as it ended, its log, and what the way rests on."""

    run: Run
    log: list[RunStep]
    assumed: list[Assumption]


def simulate(automation: Automation, contact: Contact | None, given: Given) -> tuple[list[Way], bool]:
    """Runs the automation's draft for the contact (None: one without data); returns its ways, and whether more follow.

    There is one way, unless `given` asks for both. Waits are over at once. Raises Invalid for what is given to a step
    that does not wait for it, and Overloaded.
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
    """The outcomes that the next way begins with: it turns where the second one has not been tried; [] at the end."""
    for place in range(len(assumed) - 1, -1, -1):
        if assumed[place].outcome != TIMED_OUT:
            return [*(each.outcome for each in assumed[:place]), TIMED_OUT]
    return []


class _Simulation:
    """A draft, whom it runs for, and what it is given. `computed`: steps of templates, in all ways so far."""

    def __init__(self, automation: Automation, contact: Contact, given: Given) -> None:
        self._automation, self._contact, self._given = automation, contact, given
        self._program = programs.compile(automation.definition)
        self._computed = 0

    def check(self) -> None:
        """Raises Invalid for what is given to a step that does not wait for it."""
        faults = [
            Fault(pointer_to(field, name), f"The draft has no step with this 'id' that {does}.")
            for field, kind, does in _GIVEN
            for name in getattr(self._given, field)
            if name not in self._program.steps or self._program.steps[name].kind != kind
        ]
        if faults:
            raise Invalid(*faults)

    def take(self, turns: Sequence[str]) -> Way:
        """The way that begins with these outcomes of waits that nothing is given for, and goes on with the first."""
        automation, assumed, replies = self._automation, list[Assumption](), list(self._given.replies)
        run = Run(
            id=ids.new("run"),
            workspace_id=automation.workspace_id,
            automation_id=automation.id,
            version=automation.latest_version + 1,
            contact_id=self._contact.id,
            variables=self._given.variables,
            event=self._given.event,
            trace_id="",
            created_at=clock.now(),
        )
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
        return Way(run, unit.log(), assumed)

    def _is_open(self, run: Run, replies: Sequence[object]) -> bool:
        """Whether the run waits for something that is not given."""
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
        """What the run gets for its wait; None: its time comes. Uses up `replies`, and adds to `assumed`."""
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
    return (
        http_requests.answer_of(failed(Reason.LATE, "30 seconds"), attempts=3) if run.waits_for == "response" else None
    )


def _reply(log: Sequence[RunStep], given: str | Mapping[str, str]) -> dict[str, str | None]:
    """The reply; the text of a press is the button's label, or its identifier if no message offers it."""
    if isinstance(given, str):
        return {"text": given, "button_id": None}
    pressed = given["button_id"]
    offers = (each.detail["input"] for each in log if each.kind in _OFFERING and each.detail["input"])
    labels = {each["id"]: each["label"] for offer in offers for each in offer.get("buttons", ())}
    return {"text": labels.get(pressed, pressed), "button_id": pressed}


def _answered(status: int, body: bytes) -> Mapping[str, Any]:
    return http_requests.answer_of(answered(status, body), attempts=1)


def blank_contact(workspace_id: str) -> Contact:
    """A contact without any data, which is not stored."""
    now = clock.now()
    made = {"tags": [], "custom_fields": {}, "created_at": now, "updated_at": now}
    return Contact(id=ids.new("con"), workspace_id=workspace_id, **made)


# What a run waits for that can come or not, and the outcome if it comes.
_FIRST = {"response": "answered", "event": "happened"}
OUTCOMES = (*_FIRST.values(), TIMED_OUT)
# The fields of `Given` whose members are by step: the kind of step, and what it does.
_GIVEN = (
    ("responses", "http_request", "sends a request"),
    ("events", "wait_for_event", "waits for an event"),
)
