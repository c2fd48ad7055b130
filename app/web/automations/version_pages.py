"""Versions: their history and differences, restoring them, and moving runs to the published one."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.automations import automations, moves, version_counts
from app.domain.work import audit
from app.errors import Fault, Invalid, NotFound
from app.models.automations import Automation, AutomationVersion
from app.models.base import page_before
from app.web import lists, writes
from app.web.access import page, workspace_id
from app.web.automations import differences, layouts, mentions, showings
from app.web.automations.automation_pages import DRAFT, version_choices, whole_number
from app.web.automations.showings import Showing
from app.web.redirects import to

blueprint = Blueprint(
    "version_pages", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/versions"
)


@blueprint.get("")
@page("automations.see")
def index(automation_id: str) -> str:
    """Lists the versions, newest first, with the number of their unfinished runs."""
    automation = Automation.find(workspace_id(), automation_id)
    found = lists.numbered(partial(_newest, automation))
    actors = [each.published_by for each in found.rows if each.published_by]
    numbers = [each.number for each in found.rows]
    return render_template(
        "automations/versions.html",
        automation=automation,
        page=found,
        names=audit.names_of(workspace_id(), actors) if actors else {},
        under_way=version_counts.unfinished(automation.id, numbers),
    )


@blueprint.get("/compare")
@page("automations.see")
def compare(automation_id: str) -> str:
    """Compares the versions `from` and `to`, in words and in the picture of `to`.

    Without `to`, it is the draft; without `from`, the version before `to`.
    """
    automation = Automation.find(workspace_id(), automation_id)
    number, other = whole_number(request.args.get("from")), whole_number(request.args.get("to"))
    number = number or max((other or automation.latest_version + 1) - 1, 1)
    old, new = _definition(automation, number), _definition(automation, other)
    names = mentions.names_of(workspace_id(), old, new)
    found = differences.between(old, new, names)
    folded = showings.read_folding(new)
    drawn = layouts.draw(new, names, is_folded=folded.is_folded, has_marks=True)
    return render_template(
        "automations/comparison.html",
        automation=automation,
        versions=version_choices(automation),
        number=str(number),
        other=str(other) if other else DRAFT,
        differences=found,
        marks=differences.MARKS,
        triggers=differences.of_triggers(old, new, names),
        drawn=drawn,
        showing=Showing(marks=differences.marks_of(found), folded=folded),
        view=showings.view(),
        address=lists.address,
    )


@blueprint.post("/restore")
@page("automations.manage")
def restore(automation_id: str) -> Response:
    """Makes a version the draft again, and redirects to the draft."""
    automation = Automation.find(workspace_id(), automation_id)
    number = _version_sent(automation)
    done = f"Version {number} is the draft again. Publish it to put it to use."
    writes.tell(done, "automations.restore", {"version": number}, automation.id)
    return to("automation_pages.show", automation_id=automation.id, version=DRAFT)


@blueprint.get("/move")
@page("automations.manage")
def ask_to_move(automation_id: str) -> str:
    """Shows how many runs of a version can move to the published one, and how many cannot."""
    automation = Automation.find(workspace_id(), automation_id)
    number = whole_number(request.args.get("version")) or 0
    count, others = None, None
    if automation.version and 0 < number <= automation.latest_version and number != automation.version:
        count, others = moves.count(automation, number, automation.version)
    return render_template("automations/move.html", automation=automation, number=number, count=count, others=others)


@blueprint.post("/move")
@page("automations.manage")
def move(automation_id: str) -> Response:
    """Moves runs of a version to the published one, and redirects to the versions.

    Only runs that wait in a step move, and only if the published version has the step, too.
    """
    automation = Automation.find(workspace_id(), automation_id)
    body = {"from_version": _version_sent(automation), "to_version": automation.version or 0}
    done = f"The runs that could be moved go on with version {automation.version}."
    writes.tell(done, "automations.move_runs", body, automation.id)
    return to("version_pages.index", automation_id=automation.id)


def _newest(automation: Automation, after: str | None, limit: int) -> list[AutomationVersion]:
    columns = (AutomationVersion.number, AutomationVersion.published_at, AutomationVersion.published_by)
    found = AutomationVersion.select(*columns).where(AutomationVersion.automation_id == automation.id)
    return list(page_before(found, AutomationVersion, [after], limit, ("number",)))


def _definition(automation: Automation, number: int | None) -> dict[str, Any]:
    """Returns the definition of the version, or of the draft if None. Raises NotFound."""
    if number is None:
        return dict(automation.definition)
    version = automations.find_version(automation, number)
    if version is None:
        raise NotFound(f"This automation has no version {number}.")
    return dict(version.definition)


def _version_sent(automation: Automation) -> int:
    """Returns the version that the form names. Raises Invalid if the automation has no such version."""
    number = whole_number(request.form.get("version")) or 0
    if not 0 < number <= automation.latest_version:
        raise Invalid(Fault("/version", "This automation has no such version."))
    return number
