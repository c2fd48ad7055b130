"""Navigation: the menus of a workspace and of staff, as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from flask import Flask, request, url_for
from lucide.jinja import lucide

from app.web.access import Viewer, declared


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An entry of the menu: its label, its page's endpoint, and the key that opens it after `g`.

    `parts`: blueprints of further pages that belong to it. `icon`: a name at lucide.dev.
    """

    label: str
    endpoint: str
    key: str
    parts: tuple[str, ...] = ()
    icon: str = "circle"


# The label of each group, which may be empty, and its entries.
Group = tuple[str, Sequence[MenuEntry]]

_OF_THE_EDITOR = ("editor_pages", "editor_triggers", "trial_pages")
_OF_IMPORTS = ("automation_imports", "result_pages")
_OF_AUTOMATIONS = ("version_pages", "start_pages", *_OF_THE_EDITOR, *_OF_IMPORTS)
_OF_THE_INBOX = ("conversation_forms", "selection_pages", "saved_view_forms")

WORKSPACE: Sequence[Group] = (
    (
        "",
        (
            MenuEntry("Inbox", "inbox_pages.index", "i", _OF_THE_INBOX, "inbox"),
            MenuEntry("Contacts", "contact_pages.index", "c", ("import_pages", "timeline_pages"), "users"),
            MenuEntry("Segments", "segment_pages.index", "q", icon="list-filter"),
            MenuEntry("Broadcasts", "broadcast_pages.index", "y", icon="megaphone"),
            MenuEntry("Reports", "report_pages.show", "p", icon="chart-no-axes-column"),
        ),
    ),
    (
        "Automations",
        (
            MenuEntry("Automations", "automation_pages.index", "w", _OF_AUTOMATIONS, "workflow"),
            MenuEntry("Runs", "run_pages.index", "u", icon="activity"),
        ),
    ),
    (
        "Webhooks",
        (
            MenuEntry("Overview", "overviews.show", "o", icon="chart-column"),
            MenuEntry("Failures", "failures.show", "f", icon="triangle-alert"),
            MenuEntry("Deliveries", "delivery_pages.index", "d", icon="send"),
            MenuEntry("Endpoints", "endpoint_pages.index", "e", ("developer_endpoints",), "webhook"),
            MenuEntry("Replays", "replay_pages.index", "r", icon="rotate-ccw"),
            MenuEntry("Verify a webhook", "verify_pages.show", "v", icon="shield-check"),
        ),
    ),
    (
        "Workspace",
        (
            MenuEntry("Channels", "channel_pages.index", "h", icon="message-circle"),
            MenuEntry("Members", "member_pages.index", "m", icon="user-plus"),
            MenuEntry("Saved replies", "saved_reply_pages.index", "s", icon="message-square-quote"),
            MenuEntry("Macros", "macro_pages.index", "x", icon="zap"),
            MenuEntry("Tokens", "token_pages.index", "t", icon="key-round"),
            MenuEntry("Billing", "billing_pages.show", "b", icon="credit-card"),
            MenuEntry("Audit log", "audit_pages.index", "a", icon="scroll-text"),
            MenuEntry("Jobs", "job_pages.index", "j", icon="list-checks"),
        ),
    ),
)
STAFF: Sequence[Group] = (
    (
        "All workspaces",
        (
            MenuEntry("Overview", "overviews.show_all", "o", icon="chart-column"),
            MenuEntry("Failures", "failures.show_all", "f", icon="triangle-alert"),
            MenuEntry("Workspaces", "workspace_pages.index", "w", icon="building-2"),
            MenuEntry("Audit log", "audit_pages.index_all", "a", icon="scroll-text"),
        ),
    ),
)


def install(pages: Flask) -> None:
    """Gives templates `menu(viewer)`, the entries that the viewer may see, and `icon(name)`."""
    pages.jinja_env.globals["menu"] = _menu
    pages.jinja_env.globals["icon"] = _icon


@cache
def _icon(name: str) -> str:
    """Returns a decorative icon as SVG, which screen readers skip."""
    return lucide(name, size=16, aria_hidden="true", focusable="false")


def _menu(viewer: Viewer) -> Iterator[tuple[str, list[tuple[MenuEntry, str, bool]]]]:
    groups = WORKSPACE if viewer.workspace_id else STAFF if viewer.signed.is_support else ()
    path: dict[str, Any] = {"workspace": viewer.workspace_id} if viewer.workspace_id else {}
    for label, places in groups:
        seen = [
            (place, url_for(place.endpoint, **path), _is_here(place)) for place in places if _may_see(viewer, place)
        ]
        if seen:
            yield label, seen


def _may_see(viewer: Viewer, place: MenuEntry) -> bool:
    action = declared(place.endpoint).get("action")
    return action is None or viewer.may(action)


def _is_here(place: MenuEntry) -> bool:
    """Whether the page belongs to the entry: its endpoint, or another page of its blueprints."""
    here = request.endpoint or ""
    blueprint = here.partition(".")[0]
    return here == place.endpoint or (
        blueprint in (place.endpoint.partition(".")[0], *place.parts) and not here.endswith("_all")
    )
