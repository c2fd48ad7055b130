"""Navigation: the menus of a workspace and of staff, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from flask import Flask, request, url_for
from lucide.jinja import lucide

from app.web import lists
from app.web.access import Viewer, declared


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An entry of the menu: its label, its page's endpoint, and the key that opens it after `g`.

    `icon`: a name at lucide.dev. `parts`: blueprints of further pages that belong to the entry.
    """

    label: str
    endpoint: str
    key: str
    icon: str
    parts: tuple[str, ...] = ()


_OF_THE_INBOX = ("conversation_forms", "selection_pages", "saved_view_forms")
_OF_THE_EDITOR = ("editor_pages", "editor_triggers", "trial_pages")
_OF_AUTOMATIONS = ("version_pages", "start_pages", *_OF_THE_EDITOR, "automation_imports", "result_pages")

# The entries of the menus, by the label of their group, which may be empty.
WORKSPACE: Mapping[str, Sequence[MenuEntry]] = {
    "": (
        MenuEntry("Inbox", "inbox_pages.index", "i", "inbox", _OF_THE_INBOX),
        MenuEntry("Contacts", "contact_pages.index", "c", "users", ("import_pages", "timeline_pages")),
        MenuEntry("Segments", "segment_pages.index", "q", "list-filter"),
        MenuEntry("Broadcasts", "broadcast_pages.index", "y", "megaphone"),
        MenuEntry("Reports", "report_pages.show", "p", "chart-no-axes-column"),
    ),
    "Automations": (
        MenuEntry("Automations", "automation_pages.index", "w", "workflow", _OF_AUTOMATIONS),
        MenuEntry("Runs", "run_pages.index", "u", "activity"),
    ),
    "Webhooks": (
        MenuEntry("Overview", "overviews.show", "o", "chart-column"),
        MenuEntry("Failures", "failures.show", "f", "triangle-alert"),
        MenuEntry("Deliveries", "delivery_pages.index", "d", "send"),
        MenuEntry("Endpoints", "endpoint_pages.index", "e", "webhook", ("developer_endpoints",)),
        MenuEntry("Replays", "replay_pages.index", "r", "rotate-ccw"),
        MenuEntry("Verify a webhook", "verify_pages.show", "v", "shield-check"),
    ),
    "Workspace": (
        MenuEntry("Channels", "channel_pages.index", "h", "message-circle"),
        MenuEntry("Members", "member_pages.index", "m", "user-plus"),
        MenuEntry("Saved replies", "saved_reply_pages.index", "s", "message-square-quote"),
        MenuEntry("Macros", "macro_pages.index", "x", "zap"),
        MenuEntry("Tokens", "token_pages.index", "t", "key-round"),
        MenuEntry("Billing", "billing_pages.show", "b", "credit-card"),
        MenuEntry("Audit log", "audit_pages.index", "a", "scroll-text"),
        MenuEntry("Jobs", "job_pages.index", "j", "list-checks"),
    ),
}
STAFF: Mapping[str, Sequence[MenuEntry]] = {
    "All workspaces": (
        MenuEntry("Overview", "overviews.show_all", "o", "chart-column"),
        MenuEntry("Failures", "failures.show_all", "f", "triangle-alert"),
        MenuEntry("Workspaces", "workspace_pages.index", "w", "building-2"),
        MenuEntry("Audit log", "audit_pages.index_all", "a", "scroll-text"),
    ),
}


def install(pages: Flask) -> None:
    """Gives templates `menu(viewer)`, `icon(name)`, and `address`, which changes this page's address."""
    pages.jinja_env.globals.update(menu=_menu, icon=_icon, address=lists.address)


@cache
def _icon(name: str) -> str:
    return lucide(name, size=16, aria_hidden="true", focusable="false")


def _menu(viewer: Viewer) -> Iterator[tuple[str, list[tuple[MenuEntry, str, bool]]]]:
    """Yields each group with entries that the viewer may see: (entry, address, `_is_here`)."""
    groups = WORKSPACE if viewer.workspace_id else STAFF if viewer.signed.is_support else {}
    path: dict[str, Any] = {"workspace": viewer.workspace_id} if viewer.workspace_id else {}
    for label, entries in groups.items():
        actions = [(each, declared(each.endpoint).get("action")) for each in entries]
        seen = [each for each, action in actions if action is None or viewer.may(action)]
        if seen:
            yield label, [(each, url_for(each.endpoint, **path), _is_here(each)) for each in seen]


def _is_here(entry: MenuEntry) -> bool:
    """Whether the page belongs to the entry: its endpoint, or another page of its blueprints."""
    here = request.endpoint or ""
    is_part = here.partition(".")[0] in (entry.endpoint.partition(".")[0], *entry.parts)
    return here == entry.endpoint or (is_part and not here.endswith("_all"))
