"""Trials: simulates the draft with the moves that the user has made in the editor's chat so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.automations import simulations
from app.domain.automations.definitions import programs
from app.domain.automations.editing import step_trees
from app.domain.automations.editing.working_copies import Copy
from app.domain.automations.simulations import Given
from app.domain.webhooks import catalogue
from app.errors import Fault, Invalid
from app.lib import json
from app.models.contacts import Contact
from app.models.runs import Run, RunStep
from app.web.automation_editor import editor_conditions
from app.web.automations import trails, wordings
from app.web.automations.showings import Trail

MOST_MOVES, MOST_BYTES, LONGEST_REPLY = 200, 64 * 1024, 4_096
MOST_LINES = 1_000  # the most lines that the chat shows: the latest
_SENDS = ("send_message", "ask")
_ASKS = ("ask", "wait_for_reply")
_KINDS = ("reply", "press", "late", "response", "event")
Move = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the chat. `buttons`: the buttons of a message. `notes`: the warnings of its step.

    `sort`: `out` (to the contact), `in` (from the contact), `note`, `bad` (a step failed) or `end` (the run is over).
    """

    sort: str
    text: str
    step: str | None = None
    buttons: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Talk:
    """The content of the chat.

    `waits_for`: the next move: `reply`, `response` or `event`; None at the end.
    """

    lines: Sequence[Line]
    run: Run
    trail: Trail
    waits_for: str | None = None
    step: str | None = None


@dataclass
class Told:
    """The input of a trial. `moves`: the moves so far, in order. `variables`: JSON as typed."""

    contact_id: str = ""
    variables: str = ""
    event: str = ""
    moves: list[Move] = field(default_factory=list)


def read_moves(text: str) -> list[Move]:
    """Parses the moves that the form sends back; [] if they are invalid."""
    try:
        moves = json.loads(text) if len(text) <= MOST_BYTES else []
    except ValueError:
        return []
    return moves[:MOST_MOVES] if isinstance(moves, list) and all(map(_is_move, moves)) else []


def move_of(do: str, given: Mapping[str, str]) -> Move | None:
    """Returns the move that the form makes; None if it makes none. Raises Invalid."""
    button, step = do.partition(":")[2], given["step"]
    match do.partition(":")[0]:
        case "say":
            return {"reply": given["text"][:LONGEST_REPLY]} if given["text"].strip() else None
        case "press":
            return {"press": button[:100]}
        case "late":
            return {"late": True}
        case "answer":
            return {"response": step, "value": {"status": _status(given["status"]), "body": _body(given["body"])}}
        case "no-answer":
            return {"response": step, "value": None}
        case "happened":
            return {"event": step, "value": True}
        case "not-happened":
            return {"event": step, "value": None}
    return None


def talk(copy: Copy, contact: Contact | None, told: Told) -> Talk:
    """Runs the draft, which must have no faults, with the moves so far. Raises Invalid, Overloaded."""
    steps = {placed.step["id"]: placed.step for placed in step_trees.walk(copy.definition)}
    given = Given(variables=_variables(told.variables), event=_event(copy, told.event), stops=True)
    given = replace(given, **_given(told.moves, steps, copy.automation.workspace_id))
    automation = copy.automation.altered(definition=copy.definition)
    [way], _ = simulations.simulate(automation, contact, given)
    waits_for = None if way.run.is_finished else way.run.waits_for
    lines = [line for entry in way.log for line in _lines(entry, steps.get(entry.step, {}))]
    if (earlier := len(lines) - MOST_LINES) > 0:
        lines = [Line("note", f"{earlier:,} earlier lines are left out."), *lines[earlier:]]
    if way.run.is_finished:
        lines.append(Line("end", "The run is completed." if way.run.status == "completed" else "The run has failed."))
    return Talk(
        lines, way.run, trails.trail_of(way.run, way.log, programs.compile(copy.definition)), waits_for, way.run.step
    )


def _given(moves: Sequence[Move], steps: Mapping[str, Any], workspace_id: str) -> dict[str, Any]:
    replies: list[Any] = []
    responses: dict[str, Any] = {}
    events: dict[str, Any] = {}
    for move in moves:
        if "reply" in move:
            replies.append(move["reply"])
        elif "press" in move:
            replies.append({"button_id": move["press"]})
        elif "late" in move:
            replies.append(None)
        elif steps.get(move.get("response", ""), {}).get("kind") == "http_request":
            responses[move["response"]] = move["value"]
        elif steps.get(move.get("event", ""), {}).get("kind") == "wait_for_event":
            step = steps[move["event"]]
            events[step["id"]] = catalogue.sample(step["event"], workspace_id) if move["value"] else None
    return {"replies": replies, "responses": responses, "events": events}


def _lines(entry: RunStep, step: Mapping[str, Any]) -> list[Line]:
    """Returns the chat's lines for a log entry."""
    given, output, text = entry.detail["input"], entry.detail["output"], entry.detail["text"]
    notes = entry.detail.get("warnings", ())
    if entry.status == "failed":
        return [Line("bad", text, entry.step, notes=notes)]
    if entry.kind in _SENDS and isinstance(given, Mapping) and "text" in given:
        return [Line("out", given["text"], entry.step, given.get("buttons", ()), notes)]
    if entry.kind in _ASKS:
        if entry.status == "waiting":
            return []
        if isinstance(output, Mapping) and output.get("text") is not None:
            return [Line("in", str(output["text"]), entry.step)]
        return [Line("note", text, entry.step)]
    if entry.status == "waiting" and entry.kind != "wait":
        return []
    said = f"{wordings.step(step, {}).title}; skipped here." if entry.kind == "wait" else text
    if entry.kind == "wait" and entry.status != "waiting":
        return []
    return [Line("note", said, entry.step, notes=notes)]


def _variables(text: str) -> Mapping[str, Any]:
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Invalid(Fault("/variables", f"This is not JSON: {error}.")) from error
    if not isinstance(found, dict):
        raise Invalid(Fault("/variables", 'Give an object, such as {"plan": "gold"}.'))
    return found


def _event(copy: Copy, kind: str) -> Mapping[str, Any] | None:
    if kind not in catalogue.KINDS:
        return None
    sample: Mapping[str, Any] = catalogue.sample(kind, copy.automation.workspace_id)
    return sample


def _status(text: str) -> int:
    try:
        found = editor_conditions.number(text or "200")
    except ValueError as error:
        raise Invalid(Fault("/status", str(error))) from error
    if not isinstance(found, int) or not 100 <= found <= 599:
        raise Invalid(Fault("/status", "Give a status from 100 to 599."))
    return found


def _body(text: str) -> Any:
    """Parses the text as JSON; returns the text itself if it is not."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_move(move: Any) -> bool:
    if not isinstance(move, dict) or len(move.keys() & set(_KINDS)) != 1:
        return False
    texts = (move.get("reply", ""), move.get("press", ""), move.get("response", ""), move.get("event", ""))
    if not all(isinstance(each, str) for each in texts):
        return False
    value = move.get("value")
    if "response" in move and value is not None:
        return isinstance(value, dict) and isinstance(value.get("status"), int) and 100 <= value["status"] <= 599
    return True
