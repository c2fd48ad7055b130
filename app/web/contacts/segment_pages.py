"""Segments: listing, creating (with a count of matches), changing and deleting them."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.contacts import contact_names
from app.domain.segments.scans import Counted
from app.errors import Conflict, Fault, Invalid
from app.lib import clock, ids, normalization
from app.models.segments import Segment
from app.web import writes
from app.web.access import page, workspace_id
from app.web.contacts import segment_forms, segment_rows
from app.web.contacts.segment_forms import Given
from app.web.forms import Answer, errors_of, status_of
from app.web.lists import page_of
from app.web.redirects import to

blueprint = Blueprint("segment_pages", __name__, url_prefix="/workspaces/<workspace>/segments")


@blueprint.get("")
@page("segments.see")
def index() -> str:
    """Lists the segments, newest first."""
    found = page_of(Segment.in_workspace(workspace_id()), Segment)
    return render_template("segments/index.html", page=found, summary_of=segment_forms.summary_of)


@blueprint.get("/new")
@page("segments.manage")
def new() -> str:
    """Shows the form of a new segment."""
    return _form(None, Given())


@blueprint.get("/<segment_id>")
@page("segments.see")
def edit(segment_id: str) -> str:
    """Shows the form of a segment; for viewers who may not change it, the filter in words."""
    segment = Segment.find(workspace_id(), segment_id)
    return _form(segment, segment_forms.given_of(segment.name, segment.filter))


@blueprint.post("/new", endpoint="create")
@blueprint.post("/<segment_id>", endpoint="update")
@page("segments.manage")
def save(segment_id: str | None = None) -> Answer:
    """Saves or creates the segment and redirects; or shows a count, changed rows or a refusal."""
    segment = Segment.find(workspace_id(), segment_id) if segment_id else None
    given, button = segment_forms.given(), request.form.get("do", "save")
    changed = segment_forms.pressed(given, button)
    if changed is not None:
        return _form(segment, changed)
    try:
        if button == "count":
            return _form(segment, given, counted=segment_forms.count(segment_forms.filter_of(given)))
        body = _body(given)
        kind = "segments.update" if segment else "segments.create"
        job = writes.submit(kind, body, segment.id if segment else ids.new("seg"))
    except Invalid as error:
        faulty, errors = segment_forms.with_faults(given, error)
        return _form(segment, faulty, errors), status_of(error)
    except Conflict as error:
        return _form(segment, given, errors_of(error)), status_of(error)
    return to("segment_pages.index", f"“{body['name']}” is saved." if job.is_finished else None)


@blueprint.post("/<segment_id>/delete")
@page("segments.manage")
def delete(segment_id: str) -> Response:
    """Deletes the segment, and redirects to the list. A Conflict is shown there."""
    segment = Segment.find(workspace_id(), segment_id)
    writes.tell(f"The segment “{segment.name}” was deleted.", "segments.delete", {}, segment.id)
    return to("segment_pages.index")


def _body(given: Given) -> dict[str, Any]:
    """Returns the API body of the segment. Raises Invalid, with the faults of name and filter."""
    body, faults = dict[str, Any](), list[Fault]()
    try:
        body["name"] = normalization.name(given.name)
    except ValueError as error:
        faults.append(Fault("/name", str(error)))
    try:
        body["filter"] = segment_forms.filter_of(given)
    except Invalid as error:
        faults += error.faults
    if faults:
        raise Invalid(*faults)
    return body


def _form(
    segment: Segment | None, given: Given, errors: dict[str, str] | None = None, counted: Counted | str | None = None
) -> str:
    return render_template(
        "segments/form.html",
        segment=segment,
        given=given,
        errors=errors or {},
        counted=None if isinstance(counted, str) else counted,
        counted_at=clock.now(),
        refusal=counted if isinstance(counted, str) else None,
        summary_of=segment_forms.summary_of,
        fields=list(segment_rows.FIELDS.items()),
        comparisons=list(segment_rows.COMPARISONS.items()),
        custom=segment_rows.CUSTOM,
        most=segment_forms.MOST_ROWS,
        most_groups=segment_forms.MOST_GROUPS,
        name_of=contact_names.name_of,
    )
