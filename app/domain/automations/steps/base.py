"""The interface of kinds of steps: fields, and functions for runs that reach or resume a step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from app import bounds
from app.database import rows
from app.domain.contacts import contacts
from app.domain.conversations import conversations
from app.domain.triggers import conditions, run_states
from app.domain.triggers.plain_words import Given, Names
from app.domain.work.changes import Change
from app.domain.work.units import Unit
from app.errors import Fault, pointer_to
from app.lib import templates
from app.lib.json import timestamp
from app.lib.templates import Budget, Overspent, TemplateError
from app.models.contacts import Contact
from app.models.runs import Run

FailureCode = Literal["limit", "no_channel", "opted_out", "template", "gone", "error"]

_TIMEZONE = "SELECT timezone FROM workspaces WHERE id = %s"
# Matches templates that may need the workspace: by its name, or for the filter `date`, which uses its time zone.
_OF_WORKSPACE = re.compile("workspace|date")
_OVERSPENT = "The templates of this step take more than {:,} steps together. Use fewer or shorter ones."
_LONG_CONDITION = "The condition of this step takes more than {:,} steps. Compare less, or shorter lists and texts."


class StepFailed(Exception):
    """The step cannot be done. The run fails with this code and sentence."""

    def __init__(self, code: FailureCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a published definition.

    `fields`: its members except `id`, `kind` and nested lists. `next`: the step after it, at any level; None if the run
    ends. `inside`: the first step of each nested list, or `next` if the list is empty.
    """

    id: str
    kind: str
    fields: Mapping[str, Any]
    next: str | None
    inside: Mapping[str, str | None] = field(default_factory=dict)


class StepContext:
    """A run at a step: the values that the step can read, and the unit for its changes.

    Reads include the transaction's changes. Steps make all changes through `unit`, with verbs that take a `Change`, so
    changes are rolled back if the run's transaction fails, and never happen in a simulation. `answer`: what the step
    waited for, only in `resume`; None after a timeout.
    """

    def __init__(self, unit: Unit, run: Run, *, is_simulated: bool = False) -> None:
        self.unit = unit
        self.run = run.altered()  # a copy, which the steps modify; the status changes last
        self.is_simulated = is_simulated
        self.step: Step
        self.answer: Mapping[str, Any] | None = None
        self._budget = Budget(bounds.COMPUTING_PER_STEP.most)
        self._talks = False

    @property
    def now(self) -> datetime:
        """The database's time."""
        return self.unit.now

    @property
    def contact(self) -> Contact:
        """The run's contact. Raises StepFailed `gone` if it has been deleted, and Busy."""
        contact = self.unit.get(Contact, self.run.workspace_id, "id", self.run.contact_id)
        if contact is None:
            raise StepFailed("gone", "The contact has been deleted.")
        return contact

    @property
    def variables(self) -> Mapping[str, Any]:
        """The values that templates and conditions can name."""
        return {
            "contact": _with_times_as_text(contacts.represent(self.contact)),
            "conversation": self._conversation(),
            "trigger": {"event": self.run.event, "variables": self.run.variables},
            "steps": self.run.saved,
            "run": {"id": self.run.id, "variables": {**self.run.variables, **self.run.own_variables}},
        }

    def render(self, template: str) -> str:
        """Renders a template. Raises StepFailed `template` and `limit`."""
        if "{" not in template:
            return template
        try:
            return templates.render(template, {**self.variables, **self._workspace(template)}, self._budget)
        except Overspent as error:
            bounds.COMPUTING_PER_STEP.reached()
            raise StepFailed("limit", _OVERSPENT.format(self._budget.most)) from error
        except TemplateError as error:
            raise StepFailed("template", str(error)) from error

    def holds(self, condition: Mapping[str, Any]) -> bool:
        """Whether the condition holds now. Raises StepFailed `limit`."""
        try:
            return conditions.holds(condition, self.variables, self._budget.spend)
        except Overspent as error:
            bounds.COMPUTING_PER_STEP.reached()
            raise StepFailed("limit", _LONG_CONDITION.format(self._budget.most)) from error

    def change(self, payload: Mapping[str, Any], resource_id: str | None = None) -> Change:
        """Returns a change for a domain verb, with the run as its cause."""
        cause = run_states.cause_of(self.run)
        return Change(self.run.workspace_id, payload, resource_id, "runs", None, cause, self.unit)

    def _workspace(self, template: str) -> Mapping[str, Any]:
        """Returns the workspace's values for a template; {} without a query if it cannot need them."""
        if not _OF_WORKSPACE.search(template):
            return {}
        workspace_id = self.run.workspace_id
        [(timezone,)] = self.unit.noted(("timezone", workspace_id), lambda: rows(_TIMEZONE, (workspace_id,)))
        return {"workspace": {"timezone": timezone}}

    def _conversation(self) -> Mapping[str, Any]:
        found = conversations.of_run(self.unit, self.run) if self._talks else None
        return _with_times_as_text(conversations.represent(found)) if found else {}


@dataclass(frozen=True, slots=True)
class Done:
    """The step is finished. The run continues with `to`, a key of `inside`, or with the next step.

    `code` says why it was not successful. `input`, `output` and `text` (a sentence) are logged. `saved` is merged into
    `steps`; `run_fields` are set on the run.
    """

    text: str
    input: Any = None
    output: Any = None
    saved: Mapping[str, Any] = field(default_factory=dict)
    to: str | None = None
    run_fields: Mapping[str, Any] = field(default_factory=dict)
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The run waits until `until` (None: without limit), or until its answer arrives.

    Then `resume` is called; after `quiet_hours`, `member` and `file`, the step starts over. With `response`, `request`
    is sent: see `http_requests.py`.
    """

    waits_for: Literal["time", "reply", "response", "run", "event", "quiet_hours", "member", "file"]
    text: str
    until: datetime | None = None
    input: Any = None
    request: Mapping[str, Any] | None = None
    run_fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stop:
    """The run is completed. `result`: for the other run that started the run and waits, if any."""

    text: str
    result: Any = None


Outcome = Done | Wait | Stop


# The JSON Schema of a name under which templates can read a saved value.
NAME: dict[str, Any] = {
    "type": "string",
    "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$",
    "x-form": "a name of up to 64 letters, digits and underscores that does not begin with a digit",
}


def whole_number(least: int, most: int, description: str, **further: Any) -> dict[str, Any]:
    """Returns the JSON Schema of a whole number from `least` to `most`, with `further` members."""
    return {"type": "integer", "minimum": least, "maximum": most, **further, "description": description}


def saved(context: StepContext, result: Mapping[str, Any], value: Any) -> dict[str, Any]:
    """Returns additions to `steps`: `result` under the step's `id`, and `value` under its `save_as`."""
    fields = context.step.fields
    named = {fields["save_as"]: value} if "save_as" in fields else {}
    return {**named, context.step.id: result}


def _with_times_as_text(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    """Converts the resource's times to JSON text, for templates and conditions."""
    return {name: timestamp(value) if isinstance(value, datetime) else value for name, value in resource.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """How the editor offers a kind of step. `icon`: its name at lucide.dev.

    `id`: the base of new steps' identifiers, if it is not the kind. `members`: what a new step begins with.
    """

    title: str
    icon: str
    id: str | None = None
    members: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Words:
    """A step in words: its action, its text, and the labels of its buttons."""

    title: str
    detail: str = ""
    chips: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The title, the detail and the buttons in one line."""
        buttons = f" Buttons: {', '.join(self.chips)}." if self.chips else ""
        return (f"{self.title}: {self.detail}" if self.detail else self.title) + buttons


@dataclass(frozen=True, slots=True)
class StepKind:
    """A kind of step, for the tables in `app/domain/automations/steps/__init__.py`.

    `words(step, names)` describes a step; both it and `way` raise KeyError or similar for a step with faults.
    `way(step, key)`: the short and the full label of the branch with this key of `inside`; `past`: the labels of the
    path around the steps of `otherwise`.

    `fields`: JSON Schemas of its members besides `id` and `kind`. Of these, `templates` hold Liquid templates (at any
    depth), `conditions` conditions, `trigger` parts of a trigger, `paths` names of values, and `lists` steps. `arms`:
    the member with a list of objects, each with a `name` and `steps`. `loops`: after the nested steps, the step itself
    comes again. `waits`: a run always waits in it. `talks`: it needs the run's conversation. `results`: the members of
    `steps.<id>` after it. `check(step, pointer)` yields other faults. `example`: a valid step without `id`.
    """

    description: str
    fields: Mapping[str, Mapping[str, Any]]
    begin: Callable[[StepContext], Outcome]
    entry: Entry
    words: Callable[[Given, Names], Words]
    way: Callable[[Given, str], tuple[str, str]] = lambda step, key: (key, key)
    past: tuple[str, str] | None = None
    required: tuple[str, ...] = ()
    templates: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    trigger: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    arms: str | None = None
    loops: bool = False
    waits: bool = False
    talks: bool = False
    results: tuple[str, ...] = ()
    resume: Callable[[StepContext], Outcome] = lambda context: Done("The wait is over.")
    check: Callable[[Mapping[str, Any], str], Iterator[Fault]] = lambda step, pointer: iter(())
    example: Mapping[str, Any] = field(default_factory=dict)

    def inside(self, step: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
        """Yields the lists of steps inside a step: key, relative pointer, steps."""
        for name in self.lists:
            yield name, pointer_to(name), step.get(name, [])
        for index, arm in enumerate(step.get(self.arms, []) if self.arms else ()):
            yield arm["name"], pointer_to(self.arms or "", index, "steps"), arm.get("steps", [])
