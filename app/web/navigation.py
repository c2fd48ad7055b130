"""Navigation: the menu of a workspace and of staff, as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Flask, request, url_for

from app.web.access import Viewer, declared


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the menu: its label, the endpoint of its page, and the letter that goes there after `g`.

    `parts` are the blueprints of further pages that belong to it.
    """

    label: str
    endpoint: str
    key: str
    parts: tuple[str, ...] = ()


Group = tuple[str, Sequence[Place]]

WORKSPACE: Sequence[Group] = (
    (
        "Customers",
        (
            Place("Inbox", "inbox_pages.index", "i", ("conversation_forms", "selection_pages", "saved_view_forms")),
            Place("Saved replies", "saved_reply_pages.index", "s"),
            Place("Macros", "macro_pages.index", "x"),
            Place("Reports", "report_pages.show", "p"),
            Place("Contacts", "contact_pages.index", "c", ("import_pages", "timeline_pages")),
        ),
    ),
    (
        "Dashboard",
        (
            Place("Overview", "overviews.show", "o"),
            Place("Failures", "failures.show", "f"),
            Place("Deliveries", "delivery_pages.index", "d"),
            Place("Endpoints", "endpoint_pages.index", "e"),
            Place("Replays", "replay_pages.index", "r"),
            Place("Jobs", "job_pages.index", "j"),
            Place("Runs", "run_pages.index", "u"),
        ),
    ),
    (
        "Settings",
        (
            Place("Channels", "channel_pages.index", "h"),
            Place("Tokens", "token_pages.index", "t"),
            Place("Endpoints", "developer_endpoints.index", "w"),
            Place("Verify a webhook", "verify_pages.show", "v"),
            Place("Members", "member_pages.index", "m"),
            Place("Billing", "billing_pages.show", "b", ("invoice_pages",)),
            Place("Audit log", "audit_pages.index", "a"),
        ),
    ),
)
STAFF: Sequence[Group] = (
    (
        "All workspaces",
        (
            Place("Overview", "overviews.show_all", "o"),
            Place("Failures", "failures.show_all", "f"),
            Place("Workspaces", "workspace_pages.index", "w"),
        ),
    ),
)


def install(pages: Flask) -> None:
    """Gives templates `menu(viewer)`: the groups of places that the viewer may see."""
    pages.jinja_env.globals["menu"] = _menu


def _menu(viewer: Viewer) -> Iterator[tuple[str, list[tuple[Place, str, bool]]]]:
    groups = WORKSPACE if viewer.workspace_id else STAFF if viewer.signed.is_support else ()
    path: dict[str, Any] = {"workspace": viewer.workspace_id} if viewer.workspace_id else {}
    for label, places in groups:
        seen = [
            (place, url_for(place.endpoint, **path), _is_here(place)) for place in places if _may_see(viewer, place)
        ]
        if seen:
            yield label, seen


def _may_see(viewer: Viewer, place: Place) -> bool:
    action = declared(place.endpoint).get("action")
    return action is None or viewer.may(action)


def _is_here(place: Place) -> bool:
    """Whether the page belongs to the place: pages of one blueprint share theirs."""
    here = request.endpoint or ""
    blueprint = here.partition(".")[0]
    return here == place.endpoint or (
        blueprint in (place.endpoint.partition(".")[0], *place.parts) and not here.endswith("_all")
    )
