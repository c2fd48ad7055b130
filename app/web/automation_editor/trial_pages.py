"""Trials: a chat beside the picture that runs the draft, and tests of a single HTTP request.

Each request contains all moves so far, and simulates the draft with them from the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flask import Blueprint

from app.domain.automations import request_tests, simulations
from app.domain.automations.definitions import programs
from app.domain.automations.editing import step_trees
from app.domain.automations.editing.working_copies import Copy
from app.domain.automations.simulations import SimulationInput
from app.domain.triggers.event_kinds import EVENTS
from app.domain.webhooks import catalogue
from app.errors import BellhopError, Conflict, Fault, Invalid, Overloaded
from app.lib import json
from app.models.contacts import Contact
from app.models.runs import RunStep
from app.web.automation_editor import editor_conditions, editor_pages, editor_scenes
from app.web.automation_editor.editor_inputs import Choices
from app.web.automation_editor.editor_scenes import editor_page
from app.web.automations import run_paths, wordings
from app.web.automations.showings import RunPath
from app.web.forms import Answer, errors_of, status_of, typed

blueprint = Blueprint("trial_pages", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/edit")

MOST_MOVES, MOST_BYTES = 200, 64 * 1024  # of a trial; of its moves as JSON, in characters
LONGEST_REPLY = 4_096  # characters
MOST_LINES = 1_000  # the most lines that the chat shows: the latest
_ASKS = ("ask", "wait_for_reply")
_KINDS = {"reply", "press", "late", "response", "event"}
Move = Mapping[str, Any]  # has exactly one of _KINDS; `response` and `event` name their step, and have a `value`
MOST_NAMES = 40  # the most variables of an HTTP response that the page shows
EXCERPT = 4_000  # the most characters of a response that the page shows


@dataclass(frozen=True, slots=True)
class TrialLine:
    """A line of the chat. `buttons`: the buttons of a message. `notes`: the warnings of its step.

    `sort`: `out` (to the contact), `in` (from the contact), `note`, `bad` (a step failed) or `end` (the run is over).
    """

    sort: str
    text: str
    buttons: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TrialConversation:
    """The content of the chat, and the run's path in the picture.

    `waits_for`: the next move, `reply`, `response` or `event`, and `step` the step that waits for it; None at the end.
    """

    lines: Sequence[TrialLine]
    path: RunPath
    waits_for: str | None
    step: str | None


@dataclass
class TrialInput:
    """The input of a trial. `variables`: JSON as typed. `event`: its type; "" to start by hand."""

    contact_id: str = ""
    variables: str = ""
    event: str = ""
    moves: list[Move] = field(default_factory=list)


@blueprint.get("/try")
@editor_page
def show(copy: Copy) -> Answer:
    """Shows the chat at its start, with an empty contact and a sample of the first trigger's event."""
    events = [each["event"] for each in copy.definition.get("triggers", []) if each.get("event") in EVENTS]
    return _answer(copy, TrialInput(event=events[0] if events else ""))


@blueprint.post("/try")
@editor_page
def go_on(copy: Copy) -> Answer:
    """Shows the chat after the user's next move, or with the fault of an invalid move."""
    given = typed("do", "contact_id", "variables", "event", "moves", "text", "step", "status", "body")
    moves = _moves(given["moves"])
    given_input = TrialInput(given["contact_id"], given["variables"], given["event"], moves)
    if given["do"] == "restart":
        moves.clear()
    elif given["do"] == "back":
        del moves[-1:]
    else:
        try:
            move = _move(given["do"], given)
        except Invalid as error:
            return _answer(copy, given_input, errors_of(error), given)
        if move and len(moves) < MOST_MOVES:
            moves.append(move)
    return _answer(copy, given_input)


@blueprint.post("/request")
@editor_page
def send_request(copy: Copy) -> Answer:
    """Sends the request of a step, and shows the server's answer or the error in the step's form."""
    step, given = editor_scenes.step_asked_for(copy), typed("contact_id")
    contact = editor_scenes.contact_of(given["contact_id"])
    try:
        if copy.faults:
            raise Conflict("First mend what keeps the draft from running.")
        tested = request_tests.send(copy.automation, copy.definition, step["id"], contact)
    except BellhopError as error:
        tested = request_tests.Tested(error.detail)
    shown: dict[str, Any] = {"error": tested.error, "status": tested.status, "duration_ms": tested.duration_ms}
    shown |= {"body": tested.body[:EXCERPT], "names": _names(step, tested), "contact_id": given["contact_id"]}
    return editor_pages.step_form(copy, step, tested=shown)


def _answer(
    copy: Copy, given_input: TrialInput, errors: Mapping[str, str] | None = None, given: Mapping[str, str] | None = None
) -> Answer:
    """Renders the chat. `errors`, `given`: the faults and the fields of a move that was refused."""
    status, trial = 422 if errors else 200, None
    contact = editor_scenes.contact_of(given_input.contact_id)
    if not copy.faults:
        try:
            trial = _play(copy, contact, given_input)
        except Invalid as error:
            errors, status = errors_of(error), status_of(error)
        except Overloaded as error:
            errors = {"": error.detail}
    page_ = editor_scenes.render(
        copy,
        "trial",
        path=trial.path if trial else None,
        trial=trial,
        given_input=given_input,
        moves=json.dumps(given_input.moves).decode(),
        errors=errors or {},
        given=given or {},
        people=[("", "Somebody without data"), *Choices(copy.definition).people()],
        events=[("", "Nothing: it is started by hand"), *EVENTS.items()],
    )
    return page_, status


def _names(step: Any, tested: request_tests.Tested) -> list[tuple[str, str]]:
    """Returns (variable, value as JSON) for the values in the answer's body, up to MOST_NAMES."""
    if not tested.saved or not isinstance(tested.saved.get("body"), (dict, list)):
        return []
    leaves = _leaves(tested.saved["body"], f"steps.{step['id']}.body")
    return [(path, json.dumps(value).decode()) for path, value in leaves[:MOST_NAMES]]


def _leaves(value: Any, path: str, depth: int = 0) -> list[tuple[str, Any]]:
    """Returns (path, value) for each value inside; of lists, only for the first three items.

    Objects and lists more than six levels deep are returned whole.
    """
    if depth > 6 or not value or not isinstance(value, (dict, list)):
        return [(path, value)]
    items = value.items() if isinstance(value, dict) else list(enumerate(value))[:3]
    return [leaf for key, inner in items for leaf in _leaves(inner, f"{path}.{key}", depth + 1)][:MOST_NAMES]


def _moves(text: str) -> list[Move]:
    """Parses the moves that the form sends back, up to MOST_MOVES; [] if any of them is invalid."""
    try:
        moves = json.loads(text) if len(text) <= MOST_BYTES else []
    except ValueError:
        return []
    return moves[:MOST_MOVES] if isinstance(moves, list) and all(map(_is_move, moves)) else []


def _move(do: str, given: Mapping[str, str]) -> Move | None:
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


def _play(copy: Copy, contact: Contact | None, given_input: TrialInput) -> TrialConversation:
    """Runs the draft, which must have no faults, with the moves so far. Raises Invalid, Overloaded."""
    steps = {placed.step["id"]: placed.step for placed in step_trees.walk(copy.definition)}
    kind, workspace_id = given_input.event, copy.automation.workspace_id
    given = SimulationInput(
        variables=_variables(given_input.variables),
        event=catalogue.sample(kind, workspace_id) if kind in catalogue.EVENT_KINDS else None,
        stops=True,
        **_given(given_input.moves, steps, workspace_id),
    )
    [way], _ = simulations.simulate(copy.automation.altered(definition=copy.definition), contact, given)
    run = way.run
    lines = [line for entry in way.log for line in _lines(entry, steps.get(entry.step, {}))]
    if (earlier := len(lines) - MOST_LINES) > 0:
        lines = [TrialLine("note", f"{earlier:,} earlier lines are left out."), *lines[earlier:]]
    if run.is_finished:
        lines.append(TrialLine("end", "The run is completed." if run.status == "completed" else "The run has failed."))
    path = run_paths.path_of(run, way.log, programs.compile(copy.definition))
    return TrialConversation(lines, path, None if run.is_finished else run.waits_for, run.step)


def _given(moves: Sequence[Move], steps: Mapping[str, Any], workspace_id: str) -> dict[str, Any]:
    """Returns the moves as members of SimulationInput, without those for steps that are gone."""
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


def _lines(entry: RunStep, step: Mapping[str, Any]) -> list[TrialLine]:
    """Returns the lines that the chat shows for a log entry; [] if none, as for a waiting question."""
    given, output, text = entry.detail["input"], entry.detail["output"], entry.detail["text"]
    notes = entry.detail.get("warnings", ())
    if entry.status == "failed":
        return [TrialLine("bad", text, notes=notes)]
    if entry.kind in run_paths.SENDS and isinstance(given, Mapping) and "text" in given:
        return [TrialLine("out", given["text"], given.get("buttons", ()), notes)]
    if entry.kind in _ASKS:
        if entry.status == "waiting":
            return []
        if isinstance(output, Mapping) and output.get("text") is not None:
            return [TrialLine("in", str(output["text"]))]
        return [TrialLine("note", text)]
    # A wait is shown when it begins, any other step when it is finished.
    if (entry.status == "waiting") != (entry.kind == "wait"):
        return []
    said = f"{wordings.step(step, {}).title}; skipped here." if entry.kind == "wait" else text
    return [TrialLine("note", said, notes=notes)]


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


def _status(text: str) -> int:
    try:
        found = editor_conditions.number(text or "200")
    except ValueError as error:
        raise Invalid(Fault("/status", str(error))) from error
    if not isinstance(found, int) or not 100 <= found <= 599:
        raise Invalid(Fault("/status", "Give a status from 100 to 599."))
    return found


def _body(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _is_move(move: Any) -> bool:
    if not isinstance(move, dict) or len(move.keys() & _KINDS) != 1:
        return False
    if not all(isinstance(move.get(name, ""), str) for name in _KINDS - {"late"}):
        return False
    value = move.get("value")
    if "response" in move and value is not None:
        return isinstance(value, dict) and isinstance(value.get("status"), int) and 100 <= value["status"] <= 599
    return True
