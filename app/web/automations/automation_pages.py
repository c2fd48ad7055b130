"""Automations: the list, and for each the page with its picture, its settings and its actions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.automations import automations, counts, version_counts, warnings
from app.domain.automations.automations import REENTRY
from app.domain.automations.editing import working_copies
from app.errors import Conflict, Fault, Invalid
from app.lib import ids, normalization
from app.models.automations import Automation, AutomationVersion
from app.models.runs import UNFINISHED
from app.web import filters, lists, writes
from app.web.access import page, workspace_id
from app.web.automations import layouts, mentions, showings, step_figures
from app.web.automations.showings import FoldedSteps, Showing
from app.web.forms import Answer, errors_of, status_of, typed
from app.web.redirects import to

blueprint = Blueprint("automation_pages", __name__, url_prefix="/workspaces/<workspace>/automations")

MOST_VERSIONS = 50  # the most versions that a select offers
DRAFT = "draft"
_REENTRY_LABELS = {
    "": "As usual: by triggers after its run has ended, by hand every time",
    "every": "Every time",
    "after_finish": "After its run has ended",
    "once": "Only once",
}
_STATUSES = [("", "All that are under way"), *((each, each.capitalize()) for each in UNFINISHED)]


@blueprint.get("")
@page("automations.see")
def index() -> str:
    """Lists the automations, newest first; with `q`, only automations whose name contains it."""
    given = lists.filters("q")
    found = lists.sliced(partial(Automation.newest, workspace_id(), given.get("q")))
    runs = counts.runs_by_status([each.id for each in found.rows])
    return render_template("automations/index.html", page=found, given=given, runs=runs)


@blueprint.get("/new")
@page("automations.manage")
def new() -> str:
    """Shows the form of a new automation."""
    return render_template("automations/new.html", name="", errors={})


@blueprint.post("/new")
@page("automations.manage")
def create() -> Answer:
    """Creates an automation without steps, and redirects to its editor.

    Redirects to the list if the write is delayed. If it is refused, shows the form again.
    """
    given = typed("name")
    try:
        body = {"name": name_of(given["name"]), "definition": {"triggers": [], "steps": []}}
        job = writes.submit("automations.create", body, ids.new("aut"))
    except (Invalid, Conflict) as error:
        return render_template("automations/new.html", name=given["name"], errors=errors_of(error)), status_of(error)
    if not job.is_finished:
        return to("automation_pages.index")
    return to("editor_pages.show", automation_id=job.resource_id)


@blueprint.get("/<automation_id>")
@page("automations.see")
def show(automation_id: str) -> str:
    """Shows the picture of the automation, with the counts for the chosen version and period."""
    return shown(Automation.find(workspace_id(), automation_id))


@blueprint.post("/<automation_id>/publish")
@page("automations.manage")
def publish(automation_id: str) -> Answer:
    """Publishes the draft, and redirects to the automation.

    If it is refused, shows the reasons at the steps concerned.
    """
    automation = Automation.find(workspace_id(), automation_id)
    try:
        job = writes.submit(
            "automations.publish", {}, automation.id, partial(working_copies.check_publishable, automation)
        )
    except (Invalid, Conflict) as error:
        faults = error.faults if isinstance(error, Invalid) else [Fault("", error.detail)]
        return shown(automation, faults), status_of(error)
    done = "It is published. Runs that begin from now on take this version."
    return to("automation_pages.show", done if job.is_finished else None, automation_id=automation.id)


@blueprint.post("/<automation_id>/pause")
@page("automations.manage")
def pause(automation_id: str) -> Response:
    """Pauses the automation, and redirects to it. Its runs wait at their next steps."""
    return _change(automation_id, "automations.pause", "It is paused. Its runs wait at their next steps.")


@blueprint.post("/<automation_id>/resume")
@page("automations.manage")
def resume(automation_id: str) -> Response:
    """Publishes a paused automation again, so that its runs go on, and redirects to it."""
    return _change(automation_id, "automations.resume", "It is published again, and its runs go on.")


@blueprint.post("/<automation_id>/unpublish")
@page("automations.manage")
def unpublish(automation_id: str) -> Response:
    """Unpublishes the automation, and redirects to it. No new runs begin."""
    return _change(automation_id, "automations.unpublish", "Nothing starts it any more. Runs under way go on.")


@blueprint.get("/<automation_id>/settings")
@page("automations.see")
def show_settings(automation_id: str) -> str:
    """Shows the automation's settings."""
    automation = Automation.find(workspace_id(), automation_id)
    return _settings(automation, {"name": automation.name, "reentry": automation.reentry or ""})


@blueprint.post("/<automation_id>/settings")
@page("automations.manage")
def save_settings(automation_id: str) -> Answer:
    """Changes the name and the reentry, and redirects to the form. If refused, shows it again."""
    automation = Automation.find(workspace_id(), automation_id)
    given = typed("name", "reentry")
    try:
        if given["reentry"] not in ("", *REENTRY):
            raise Invalid(Fault("/reentry", "Choose one of these."))
        body = {"name": name_of(given["name"]), "reentry": given["reentry"] or None}
        job = writes.submit("automations.update", body, automation.id)
    except (Invalid, Conflict) as error:
        return _settings(automation, given, errors_of(error)), status_of(error)
    return to(
        "automation_pages.show_settings", "It was changed." if job.is_finished else None, automation_id=automation.id
    )


@blueprint.get("/<automation_id>/cancel-runs")
@page("automations.manage")
def ask_to_cancel(automation_id: str) -> str:
    """Shows how many runs match the filters, before they are cancelled."""
    automation = Automation.find(workspace_id(), automation_id)
    chosen = filters.read({"status": filters.one_of(UNFINISHED), "since": filters.time, "until": filters.time})
    return render_template(
        "automations/cancel.html",
        automation=automation,
        statuses=_STATUSES,
        chosen=chosen,
        count=automations.count_runs(workspace_id(), automation.id, chosen.values),
        most=automations.MOST_COUNTED,
    )


@blueprint.post("/<automation_id>/cancel-runs")
@page("automations.manage")
def cancel_runs(automation_id: str) -> Response:
    """Cancels the unfinished runs that match the form's filters and have begun by now.

    Redirects to the automation. Raises Invalid for a filter that the form cannot send.
    """
    automation = Automation.find(workspace_id(), automation_id)
    body: dict[str, Any] = {"before": ids.new("run")}
    if status := request.form.get("status", ""):
        if status not in UNFINISHED:
            raise Invalid(Fault("/status", "There is no such state."))
        body["status"] = status
    for name in ("since", "until"):
        try:
            if text := request.form.get(name, ""):
                body[name] = filters.time(text).isoformat()
        except ValueError as error:  # never cancel runs that were not counted on the page
            raise Invalid(Fault(f"/{name}", "This is no time.")) from error
    writes.tell("The runs are cancelled.", "automations.cancel_runs", body, automation.id)
    return to("automation_pages.show", automation_id=automation.id)


@blueprint.post("/<automation_id>/delete")
@page("automations.manage")
def delete(automation_id: str) -> Response:
    """Deletes the automation, cancels its runs, and redirects to the list."""
    automation = Automation.find(workspace_id(), automation_id)
    writes.tell(f"The automation {automation.name} was deleted.", "automations.delete", {}, automation.id)
    return to("automation_pages.index")


def name_of(typed_name: str) -> str:
    """Normalizes the name of an automation. Raises Invalid for the field `name`."""
    try:
        return normalization.name(typed_name)
    except ValueError as error:
        raise Invalid(Fault("/name", str(error))) from error


def shown(automation: Automation, faults: Sequence[Fault] = ()) -> str:
    """Renders the automation's page: the draft with `faults`, if given; otherwise the chosen version."""
    version = None if faults else _chosen_version(automation)
    definition = automation.definition if version is None else version.definition
    since = step_figures.since()
    counted = None if version is None else version_counts.read(automation, version.number, since)
    # The page of a refusal has no address of its own, so its links cannot fold or unfold steps.
    folded = None if faults else showings.read_folding(definition)
    drawn = layouts.draw(
        definition,
        mentions.names_of(workspace_id(), definition),
        exits=automation.exits,
        goal=automation.goal,
        is_folded=(folded or FoldedSteps()).is_folded,
        has_figures=counted is not None,
        has_marks=counted is None,
    )
    warned = warnings.of(automation) if version is None else warnings.of_dates(automation)
    showing = Showing(
        figures=step_figures.figures_of(automation, counted, since) if counted else {},
        shares=step_figures.shares_of(counted) if counted else {},
        problems=by_step((fault.pointer, fault.detail) for fault in faults),
        warnings=by_step((each["pointer"], each["detail"]) for each in warned),
        folded=folded,
    )
    return render_template(
        "automations/show.html",
        automation=automation,
        version=version,
        versions=version_choices(automation),
        counted=counted,
        refused=counts.refused(automation.id) if counted else {},
        drawn=drawn,
        showing=showing,
        periods=step_figures.periods(),
        view=showings.view(),
        is_changed=automation.latest_version > 0 and is_changed(automation, version),
        general=[
            *showing.problems.get("", ()),
            *(each for at in ("", "/triggers") for each in showing.warnings.get(at, ())),
        ],
        address=lists.address,
    )


def by_step(sentences: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Groups the sentences of (pointer, sentence) pairs by the step that the pointer leads into.

    The given pointers lead into an automation or a definition; the returned keys, into the definition.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for pointer, sentence in sentences:
        found[layouts.owner_of(pointer.removeprefix("/definition"))].append(sentence)
    return found


def whole_number(text: str | None) -> int | None:
    """Parses a number of up to nine digits, such as a version's; None for any other text."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def version_choices(automation: Automation) -> list[tuple[str, str]]:
    """Returns the newest versions, up to MOST_VERSIONS, and the draft as options of a select."""
    latest = automation.latest_version
    numbers = range(latest, max(latest - MOST_VERSIONS, 0), -1)
    named = [(str(each), f"Version {each}" + (", published" if each == automation.version else "")) for each in numbers]
    return [*named, (DRAFT, "Draft")]


def is_changed(automation: Automation, version: AutomationVersion | None) -> bool:
    """Whether the draft differs from the latest version; False if there is none.

    `version`: a version that is loaded already. If it is not the latest, loads that.
    """
    if version is None or version.number != automation.latest_version:
        version = automations.find_version(automation, automation.latest_version)
    return version is not None and version.definition != automation.definition


def _chosen_version(automation: Automation) -> AutomationVersion | None:
    """Returns the version in the address, or the published one, or the latest; None for the draft."""
    asked = request.args.get("version", "")
    if asked == DRAFT:
        return None
    number = whole_number(asked) or automation.version or automation.latest_version
    return automations.find_version(automation, number) if number else None


def _change(automation_id: str, kind: str, done: str) -> Response:
    automation = Automation.find(workspace_id(), automation_id)
    writes.tell(done, kind, {}, automation.id)
    return to("automation_pages.show", automation_id=automation.id)


def _settings(automation: Automation, given: dict[str, str], errors: dict[str, str] | None = None) -> str:
    runs = counts.runs_by_status([automation.id])[automation.id]
    return render_template(
        "automations/settings.html",
        automation=automation,
        given=given,
        errors=errors or {},
        reentry=list(_REENTRY_LABELS.items()),
        unfinished=sum(runs[status] for status in UNFINISHED),
    )
