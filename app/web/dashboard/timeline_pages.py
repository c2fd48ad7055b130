"""A contact's timeline: writes, events, deliveries, runs and their steps, in one list."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from flask import Blueprint, Response, render_template

from app.domain.contacts import contact_names
from app.domain.insight import timelines
from app.domain.insight.timelines import SOURCES, Entry
from app.errors import NotFound
from app.lib import ids
from app.models.contacts import Contact
from app.web import filters, periods
from app.web.access import page, workspace_id
from app.web.filters import Filter
from app.web.lists import MOST_EXPORTED, file_of, sliced, wanted_format

blueprint = Blueprint("timeline_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/contacts")

_place = attrgetter("place")
_CHOICES = [
    ("", "Everything"),
    ("events", "Writes and events"),
    ("deliveries", "Deliveries"),
    ("runs", "Runs and steps"),
]
FILTERS = {"show": Filter("Show", filters.one_of(SOURCES), _CHOICES), **periods.FILTERS}


@blueprint.get("/<contact_id>")
@page("dashboard.see")
def show(contact_id: str) -> str | Response:
    """Shows the contact's timeline, newest first; for a deleted contact, the remaining entries.

    Raises NotFound if there is neither a contact nor an entry.
    """
    if not ids.is_id(contact_id, "con"):
        raise NotFound()
    contact = Contact.one(workspace_id(), contact_id)
    chosen = filters.read(FILTERS)
    sources = [chosen.values["show"]] if "show" in chosen.values else SOURCES
    newest = partial(timelines.newest, workspace_id(), contact_id, sources=sources)
    fetch = periods.ranged(newest, chosen.values, timelines.place_of, _place)
    if wanted_format():
        return file_of(lambda: _exported(fetch(None, MOST_EXPORTED)), "timeline")
    listed = sliced(fetch, _place)
    if contact is None and not (listed.rows or timelines.newest(workspace_id(), contact_id, None, 1)):
        raise NotFound()
    return render_template(
        "timelines/show.html",
        contact=contact,
        contact_id=contact_id,
        name=contact_names.name_of(contact) if contact else contact_id,
        page=listed,
        labels=timelines.labels(workspace_id(), listed.rows),
        **chosen.shown(),
        presets=periods.presets(),
    )


def _exported(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    return [
        {
            "at": entry.at,
            "what": entry.what,
            "id": entry.row.id,
            "kind": getattr(entry.row, "kind", None),
            "status": getattr(entry.row, "status", None),
            "detail": _detail(entry),
        }
        for entry in entries
    ]


def _detail(entry: Entry) -> str | None:
    row = entry.row
    match entry.what:
        case "write":
            return (row.problem or {}).get("detail")
        case "delivery":
            return str(row.last_error) if row.last_error else None
        case "run":
            return (row.failure or {}).get("detail")
        case "step":
            return str(row.detail["text"])
    return None
