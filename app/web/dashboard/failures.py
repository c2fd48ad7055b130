"""Failures, grouped by cause. Each group links to its list, and to the form that replays it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from http.client import responses as phrases
from typing import Any, cast, get_args

from flask import Blueprint, Response, render_template, request, url_for

from app.domain.deliveries import causes, replay_choices
from app.domain.insight import failures
from app.domain.insight.failures import Group, Kind, Order
from app.domain.verbs import VERBS
from app.lib.json import timestamp
from app.problems import PROBLEMS
from app.web import charts, periods
from app.web.access import page, staff, viewer, workspace_id
from app.web.lists import address, columns, file_of, wanted_format

blueprint = Blueprint("failures", __name__)

_CODES: Mapping[str, str] = {
    "timeout": "No answer in time",
    "refused": "No connection",
    "reset": "Connection closed without an answer",
    "dns": "Name not found",
    "private_address": "Address not public",
    "tls": "No secure connection",
    "redirect": "Redirected",
    "gone": "Gone for good",
    "not_http": "Answer is not HTTP",
    "too_long": "Answer too long",
}
_KINDS: Mapping[Kind | None, str] = {None: "Everything", "delivery": "Deliveries", "job": "Writes", "run": "Runs"}


@blueprint.get("/workspaces/<workspace>/dashboard/failures")
@page("dashboard.see")
def show() -> str | Response:
    """Shows a workspace's failures, grouped by cause, as a page or as a file."""
    return _show(workspace_id())


@blueprint.get("/dashboard/failures")
@staff
def show_all() -> str | Response:
    """Shows the failures of all workspaces, grouped by cause, as a page or as a file."""
    return _show(None)


def _show(id: str | None) -> str | Response:
    kind = cast(Kind | None, _chosen("kind", failures.KINDS))
    order = cast(Order, _chosen("order", get_args(Order)) or "largest")
    period = periods.chosen_range()
    is_own = period.until is not None
    found = failures.groups(id, period.window, kind=kind, order=order, at=period.at, is_past=is_own)
    if wanted_format():
        return file_of(lambda: [_exported(group) for group in found.groups], "failures")
    return render_template(
        "failures/index.html",
        found=found,
        rows=[_row(group) for group in found.groups],
        is_all=id is None,
        period=period,
        window=period.window,
        windows=periods.links(),
        presets=periods.presets("today", "yesterday"),
        last=_last(id, kind) if not found.groups else None,
        kinds=[(label, address(kind=each), each == kind) for each, label in _KINDS.items()],
        orders=[
            ("Largest first", address(order=None), order == "largest"),
            ("Newest first", address(order="newest"), order == "newest"),
        ],
    )


def _last(id: str | None, kind: Kind | None) -> tuple[datetime, str] | None:
    """Returns the time of the last failure, and the address of the failures within an hour of it.

    None if there is none.
    """
    at, hour = failures.last_failure(id, kind), timedelta(hours=1)
    return (at, address(window=None, since=timestamp(at - hour), until=timestamp(at + hour))) if at else None


def _chosen(name: str, choices: tuple[str, ...]) -> str | None:
    given = request.args.get(name)
    return given if given in choices else None


def _row(group: Group) -> dict[str, Any]:
    """Returns a group with its words, its small chart `path`, and the addresses of its lists.

    `untried` lists deliveries that the group's endpoint holds, but that had no attempt and so no cause.
    """
    deliveries = {"endpoint_id": group.subject, "error_code": group.code, "status_code": group.status}
    if group.kind == "job":
        contents = _address(group, "job_pages.index", kind=group.subject, status="failed")
    elif group.kind == "run":
        failed = {"automation_id": group.subject, "status": "failed", "failure": group.code or None}
        contents = _address(group, "run_pages.index", **failed)
    else:
        contents = _address(group, "delivery_pages.index", **deliveries, status="failed" if group.failed_now else None)
    held = _address(group, "delivery_pages.index", **deliveries, status="held")
    untried = _address(group, "delivery_pages.index", endpoint_id=group.subject, status="held")
    return {
        "group": group,
        "cause": _cause(group),
        "meaning": _meaning(group),
        "path": charts.spark(group.counts),
        "contents": contents,
        "held": held if group.held_now else None,
        "untried": untried if group.untried_now else None,
        "replay": _replay(group, deliveries),
    }


def _replay(group: Group, deliveries: Mapping[str, Any]) -> str | None:
    """Returns the address of the form that replays or discards the group.

    None if the viewer may not replay it, or if nothing in it can be replayed.
    """
    is_job = group.kind == "job"
    if viewer().membership is not None and not viewer().may("jobs.manage" if is_job else "replays.manage"):
        return None
    if is_job:
        is_known = group.subject in VERBS and group.code in PROBLEMS
        known = {"kind": group.subject, "problem": group.code}
        return _address(group, "open_failure_pages.show", **known) if is_known else None
    if not (group.failed_now or group.held_now or group.untried_now):
        return None
    return _address(group, "replay_pages.new", **deliveries, status=list(replay_choices.DEFAULT_STATUSES))


def _cause(group: Group) -> str:
    if group.kind == "job":
        return PROBLEMS[group.code].title if group.code in PROBLEMS else group.code
    if group.kind == "run":
        return group.code.replace("_", " ").capitalize() or "No cause given"
    if group.code == "status" and group.status is not None:
        return f"Answered {group.status} {phrases.get(group.status, '')}".rstrip()
    said = _CODES.get(group.code, group.code.replace("_", " ").capitalize())
    return f"{said} ({group.status})" if group.status is not None else said


def _meaning(group: Group) -> str | None:
    if group.kind == "delivery":
        return causes.explain(group.code, group.status).meaning if group.code in causes.CAUSES else None
    return PROBLEMS[group.code].detail if group.kind == "job" and group.code in PROBLEMS else None


def _address(group: Group, endpoint: str, **filters: Any) -> str:
    return url_for(endpoint, workspace=group.workspace_id, **filters)


def _exported(group: Group) -> dict[str, Any]:
    return {
        **columns(group, "kind", "workspace_id", "workspace_name", "subject", "subject_name"),
        "cause": _cause(group),
        **columns(group, "code", "status", "failed", "final", "failed_now", "held_now", "untried_now"),
        **columns(group, "first_seen_at", "last_seen_at"),
    }
