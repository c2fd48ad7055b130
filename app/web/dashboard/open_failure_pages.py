"""Open failures: failed jobs counted by cause, and the forms that replay or discard many."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Blueprint, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from app.domain.bodies.jobs import DiscardBody
from app.domain.jobs import failed_jobs, parts
from app.domain.verbs import VERBS
from app.errors import Conflict, Fault, Invalid
from app.lib import ids
from app.problems import PROBLEMS
from app.web import writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, checked, errors_of, sentence_of, status_of, typed
from app.web.redirects import to

blueprint = Blueprint("open_failure_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/open-failures")

_LONGEST_NAME = 200
# The value of the exception filter for jobs that failed without an exception.
NONE = "none"
_LABELS = {"kind": "Kind", "problem": "Cause", "exception": "Exception"}


@blueprint.get("")
@page("jobs.manage")
def show() -> Answer:
    """Shows the open failures by cause, with forms to settle them. Drops invalid filters."""
    try:
        return _page(_chosen({name: request.args.get(name, "").strip() for name in _LABELS}), {}, {})
    except Invalid as error:
        return to("open_failure_pages.show", sentence_of(error), "error")


@blueprint.post("/replay")
@page("jobs.manage")
def replay() -> Answer:
    """Replays the open failures that the form showed, and redirects to the job that does it."""
    return _settle("jobs.replay_many", {})


@blueprint.post("/discard")
@page("jobs.manage")
def discard() -> Answer:
    """Discards the open failures that the form showed, and redirects to the job that does it.

    Shows the form again if the reason or the filter is invalid.
    """
    given = typed("reason")
    try:
        return _settle("jobs.discard_many", checked(DiscardBody(), {"reason": given["reason"].strip()}))
    except Invalid as error:
        return _page(_chosen(typed(*_LABELS)), given, errors_of(error)), status_of(error)


def _settle(kind: str, body: Mapping[str, str]) -> AnyResponse:
    """Submits the job and redirects to it; back to the form after a Conflict.

    Raises Invalid for an invalid filter: without the filter, the job would settle more than was meant.
    """
    chosen, until = _chosen(typed(*_LABELS)), typed("until")["until"]
    if not ids.is_id(until, "job"):
        raise Invalid(Fault("/until", "Open this page again: it names no last job."))
    payload = {**body, "filter": chosen, "until": until}
    try:
        job = writes.submit(kind, payload, workspace_id(), partial(parts.refuse_more, workspace_id()))
    except Conflict as conflict:
        return to("open_failure_pages.show", conflict.detail, "error", **_given(chosen))
    return to("job_pages.show", job_id=job.id)


def _page(chosen: Mapping[str, str], given: Mapping[str, str], errors: Mapping[str, str]) -> str:
    preview, refusal = None, None
    try:
        preview = failed_jobs.preview(workspace_id(), chosen, list(VERBS))
    except Conflict as conflict:
        refusal = conflict.detail
    return render_template(
        "jobs/open.html",
        preview=preview,
        refusal=refusal,
        chosen=_given(chosen),
        chips=[
            (label, _given(chosen)[name], _without(chosen, name)) for name, label in _LABELS.items() if name in chosen
        ],
        only=lambda cause: _address({"kind": cause.kind, "problem": cause.problem, "exception": cause.exception}),
        titles={slug: problem.title for slug, problem in PROBLEMS.items()},
        reasons=failed_jobs.REASONS,
        given=given,
        errors=errors,
    )


def _chosen(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the filter in the parameters of an address or form. Raises Invalid."""
    chosen = {name: text for name, text in given.items() if text}
    if "kind" in chosen and chosen["kind"] not in VERBS:
        raise Invalid(Fault("/kind", "There is no such kind of job."))
    if "problem" in chosen and chosen["problem"] not in PROBLEMS:
        raise Invalid(Fault("/problem", "There is no such cause."))
    if not all(text.isprintable() and len(text) <= _LONGEST_NAME for text in chosen.values()):
        raise Invalid(Fault("/exception", "There is no such exception."))
    return chosen | ({"exception": ""} if chosen.get("exception") == NONE else {})


def _given(chosen: Mapping[str, str]) -> dict[str, str]:
    """Returns the filter as parameters of an address or form: NONE in place of ""."""
    return {name: text or NONE for name, text in chosen.items()}


def _without(chosen: Mapping[str, str], name: str) -> str:
    return _address({each: text for each, text in chosen.items() if each != name})


def _address(chosen: Mapping[str, str]) -> str:
    given: dict[str, Any] = {**_given(chosen), "workspace": workspace_id()}
    return url_for("open_failure_pages.show", **given)
