"""Scenes: the parts that all pages of the editor share: draft, picture, problems and addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any
from urllib.parse import quote_plus

from flask import flash, render_template, request, url_for
from werkzeug.wrappers import Response

from app.domain.automations import warnings
from app.domain.automations.editing import editors, step_trees, working_copies
from app.domain.automations.editing.step_trees import At
from app.domain.automations.editing.working_copies import Copy
from app.domain.automations.steps import STEP_KINDS
from app.domain.bodies.pointers import refuse_bad_text
from app.domain.triggers import plain_words
from app.domain.work import audit
from app.errors import Conflict, Fault, Invalid
from app.lib import ids
from app.models.automations import Automation
from app.models.contacts import Contact
from app.web import lists
from app.web.access import page, viewer, workspace_id
from app.web.automation_editor import editor_conditions
from app.web.automations import layouts, mentions, showings, wordings
from app.web.automations.automation_pages import by_step
from app.web.automations.showings import RunPath, Showing
from app.web.forms import Answer
from app.web.redirects import to

# Parameters that choose how the picture is shown. Links and redirects within the editor keep them.
KEPT = ("view", "fold", "turn")


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault or a warning in the draft, in words for users of forms, who see no JSON.

    `owner`: the pointer of the step, or of another part of the draft; `where`: the same in words; `field`: the member.
    """

    owner: str
    step_id: str | None
    where: str
    field: str
    detail: str


class Addresses:
    """The addresses of the editor's forms, with the KEPT parameters of this request."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy
        self._ids = {placed.pointer: placed.step["id"] for placed in step_trees.walk(copy.definition)}
        self._kept = {name: request.args[name] for name in KEPT if request.args.get(name)}
        self._paths: dict[str, str] = {}
        # Made at once, because the picture and the list show the same places.
        places = step_trees.places(copy.definition)
        self._added = {pointer: self.of("new", **place_fields(at)) for pointer, at in places.items()}

    def add(self, place: str) -> str:
        """Returns the address of the form that adds a step at this pointer.

        The place is named by its neighbours, because pointers may change.
        """
        return self._added[place]

    def open(self, pointer: str) -> str:
        """Returns the address of the form of the step, triggers, exits or goal at this pointer."""
        if pointer in self._ids:
            return self.of("show_step", step=self._ids[pointer])
        return self.of("editor_triggers." + ("show_rules" if pointer in ("/exits", "/goal") else "show_triggers"))

    def of(self, form: str, **parameters: str | None) -> str:
        """Returns the address of a form. `form`: an endpoint, or the name of a view in `editor_pages`."""
        endpoint = form if "." in form else f"editor_pages.{form}"
        # Cached: a picture of 500 steps has 2,000 addresses of a few forms.
        if endpoint not in self._paths:
            self._paths[endpoint] = url_for(endpoint, workspace=workspace_id(), automation_id=self._copy.automation.id)
        query = {name: value for name, value in {**self._kept, **parameters}.items() if value is not None}
        # `urlencode` takes three times as long.
        pairs = "&".join([f"{name}={quote_plus(value)}" for name, value in query.items()])
        return f"{self._paths[endpoint]}?{pairs}" if query else self._paths[endpoint]


def place_fields(at: At) -> dict[str, str]:
    """Returns the fields that name a place in an address or a form: `in`, `list` and `after`."""
    return {name: text for name, text in (("in", at.owner), ("list", at.name), ("after", at.after)) if text}


def place_of(given: Mapping[str, str]) -> At:
    """Returns the place that the fields of `place_fields` name; by default, the beginning."""
    return At(given.get("in") or None, given.get("list") or "steps", given.get("after") or None)


def editor_page(view: Callable[[Copy], Answer]) -> Callable[[str], Answer]:
    """Declares a page of the editor. The view gets the working copy of the automation in the path.

    If the view raises Conflict or Invalid, redirects to the picture, which shows the error.
    """

    @page("automations.manage")
    @wraps(view)
    def shown(automation_id: str) -> Answer:
        copy = working_copies.current(Automation.find(workspace_id(), automation_id))
        try:
            return view(copy)
        except (Conflict, Invalid) as error:
            flash(error.faults[0].detail if isinstance(error, Invalid) else error.detail, "error")
            return lead_to("editor_pages.show", copy)

    return shown


def edit(copy: Copy, done: str, change: working_copies.Change, *, is_typing: bool = False) -> Copy:
    """Changes the working copy for the viewer. `done`: a phrase for the tooltip of the undo button.

    With `is_typing`, the change may extend the last one, so that one undo takes back both. Raises what `change` raises,
    and Invalid for text that cannot be stored, or a definition that cannot be edited.
    """

    def clean(definition: Mapping[str, Any]) -> Mapping[str, Any]:
        changed = change(definition)
        refuse_bad_text(changed)
        return changed

    return working_copies.edit(copy.automation, viewer().actor_id, done, clean, is_typing=is_typing)


def render(copy: Copy, panel: str | None = None, *, path: RunPath | None = None, **given: Any) -> str:
    """Renders the editor, with the panel of that name beside the picture. Without one, shows a hint.

    `path`: the path of a trial, which the picture shows. `given`: the variables of the panel's template.
    """
    automation, addresses = copy.automation, Addresses(copy)
    folded = showings.read_folding(copy.definition)
    drawn = layouts.draw(
        copy.definition,
        mentions.names_of(workspace_id(), copy.definition, automation.exits, automation.goal),
        exits=automation.exits,
        goal=automation.goal,
        is_folded=folded.is_folded,
    )
    problems, doubts = problems_of(copy, copy.faults), problems_of(copy, warnings.of_examples(copy.definition))
    showing = Showing(
        problems=by_step((each.owner, each.detail) for each in problems),
        warnings=by_step((each.owner, each.detail) for each in doubts),
        folded=folded,
        edit=addresses,
        path=path,
    )
    me = actor_id()
    people = editors.come(automation.id, me) if me else []
    states = [state for state in (copy.undoes, copy.redoes) if state is not None]
    named = names_of([*people, *(state.actor_id for state in states if state.actor_id)])
    return render_template(
        "automations/editor/show.html",
        automation=automation,
        copy=copy,
        panel=panel,
        drawn=drawn,
        showing=showing,
        problems=problems,
        doubts=doubts,
        view=showings.view(),
        address=lists.address,
        at=addresses,
        others=[named.get(who, "Support") for who in people if who != me],
        who=named,
        me=me,
        seen=seen_of(copy),
        icon_of=wordings.icon_of,
        in_words=plain_words.trigger,
        goal_in_words=plain_words.goal,
        comparisons=plain_words.COMPARISONS,
        modes=editor_conditions.MODES,
        compared=editor_conditions.COMPARED,
        **given,
    )


def problems_of(copy: Copy, faults: Iterable[Fault]) -> list[Problem]:
    """Describes faults or warnings whose pointers lead into the definition of the draft."""
    steps = {placed.pointer: placed.step for placed in step_trees.walk(copy.definition)}
    found = []
    for fault in faults:
        owner, detail = layouts.owner_of(fault.pointer), fault.detail
        member = fault.pointer.removeprefix(owner).removeprefix("/")
        where = "What starts it" if "trigger" in owner else "Steps"
        if step := steps.get(owner):
            kind = STEP_KINDS[step["kind"]]
            where = f"{kind.entry.title}, “{step['id']}”"
            if member in kind.required and member not in step:
                detail = "Fill this in."
        found.append(Problem(owner, step["id"] if step else None, where, member.partition("/")[0], detail))
    return found


def names_of(actor_ids: Collection[str]) -> dict[str, str]:
    """Returns the known members' names by identifier: the part of the e-mail address before the @."""
    found = audit.names_of(workspace_id(), actor_ids)
    return {actor_id: name.partition("@")[0] for actor_id, name in found.items()}


def contact_of(identifier: str) -> Contact | None:
    """Returns the contact with that identifier; None if there is none, or for any other text."""
    if not ids.is_id(identifier, "con"):
        return None
    found: Contact | None = Contact.in_workspace(workspace_id()).where(Contact.id == identifier).first()
    return found


def actor_id() -> str | None:
    """Returns the identifier of the viewer as an editor; None for support staff without a visit."""
    who = viewer()
    return who.actor_id if who.membership or who.visit else None


def seen_of(copy: Copy) -> str:
    """Returns a token of the draft's state. An open page with another token fetches the draft again."""
    return f"{copy.revision}-{step_trees.print_of(copy.definition)}"


def lead_to(endpoint: str, copy: Copy, anchor: str | None = None, **parameters: str) -> Response:
    """Redirects to a page of the editor, with the KEPT parameters of this request."""
    kept = {name: request.args[name] for name in KEPT if request.args.get(name)}
    return to(endpoint, automation_id=copy.automation.id, _anchor=anchor, **kept, **parameters)


def step_asked_for(copy: Copy) -> Mapping[str, Any]:
    """Returns the step named in the address or the form; by default, the first step of the draft.

    Raises Conflict if the step is gone, or if there are no steps.
    """
    asked = request.values.get("step") or next((each.step["id"] for each in step_trees.walk(copy.definition)), None)
    if asked is None:
        raise Conflict("The draft has no steps.")
    return step_trees.find(copy.definition, asked).step
