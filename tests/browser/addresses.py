"""Every page that there is, from the URL map, so that none is forgotten."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app import database
from app.config import settings
from app.domain.people import links, notifications
from app.lib import ids
from app.web import create_pages

Query = Callable[[str], list[tuple[Any, ...]]]
# What is no page: assets, files, raw bodies, parts that a script asks for.
NO_PAGES = {
    *("show_asset", "contact_pages.export", "delivery_pages.show_body", "event_pages.show_body"),
    *("inbox_pages.show_counts", "inbox_pages.show_row", "inbox_pages.show_panes", "conversation_forms.show_later"),
    *("reply_pages.index", "reply_pages.show", "notification_pages.show_bell"),
    *("automation_imports.show_file", "side_forms.show_tags", "side_forms.show_timeline"),
}
# Which row a page shows, where any would do but some show more.
ORDER = {
    "deliveries": "status = 'failed' DESC, attempts DESC",
    "jobs": "status = 'failed' DESC, problem IS NULL",
    "contacts": "external_id IS NULL",
}
# A page that looks different with a query, or shows nothing without one.
QUERIES: Mapping[str, tuple[str, ...]] = {
    "delivery_pages.index": ("", "?status=failed"),
    "automation_imports.show_template": ("?template=handover-to-a-person",),
    "searches.show": ("", "?q=ada", "?q=nothing-like-this"),
    "searches.show_all": ("", "?q=ada"),
    "automation_pages.show": ("", "?version=draft", "?view=list", "?fold=all"),
    "version_pages.ask_to_move": ("?version=1",),
    "start_pages.show": ("", "?q=ada"),
}


@dataclass(frozen=True)
class Address:
    """A page: the endpoint that makes it, where it is, and whether it is for everybody, staff or members."""

    endpoint: str
    path: str
    audience: str

    @property
    def name(self) -> str:
        query = self.path.partition("?")[2]
        return f"{self.endpoint} {query}".strip()


def addresses(environment: Mapping[str, str], query: Query, workspace_id: str) -> Iterator[Address]:
    """Every page about the workspace, those of staff, and those for everybody. Leaves out pages of rows it lacks.

    `environment` has the settings of the service, and `query` runs a statement in its database.
    """
    os.environ.update(environment)
    settings.cache_clear()
    database.connect()
    pages = create_pages()
    for rule in sorted(pages.url_map.iter_rules(), key=lambda rule: rule.rule):
        if "GET" not in rule.methods or rule.endpoint in NO_PAGES:
            continue
        values = {name: _value(query, workspace_id, rule.endpoint, name) for name in rule.arguments}
        if None in values.values():
            continue
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda found, values=values: values[found[1]], rule.rule)
        access = pages.view_functions[rule.endpoint].access
        audience = "everybody" if access.get("public") else "staff" if access.get("staff") else "members"
        for parameters in QUERIES.get(rule.endpoint, ("",)):
            yield Address(rule.endpoint, path + parameters, audience)


def _value(query: Query, workspace_id: str, endpoint: str, name: str) -> str | None:
    """A value for that part of the path; None if the workspace has no such row. Fails for what it does not know."""
    if name == "workspace":
        return workspace_id
    if endpoint == "password_pages.open_link":
        return links.invite(workspace_id, f"{ids.new('inv')}@example.com", "agent").address.rpartition("/")[2]
    if endpoint == "notification_pages.ask":
        [(account_id,)] = query(f"SELECT account_id FROM members WHERE workspace_id = '{workspace_id}' LIMIT 1")
        return notifications.unsubscribe_token(account_id)
    if name == "kind":
        return "whatsapp"  # of all kinds of channels it asks for the most
    assert name.endswith("_id"), f"No value for <{name}>"
    table = re.sub(r"([^aeo])ys$", r"\1ies", f"{name.removesuffix('_id')}s")
    order = f"{ORDER[table]}, id DESC" if table in ORDER else "id DESC"
    found = query(f"SELECT id FROM {table} WHERE workspace_id = '{workspace_id}' ORDER BY {order} LIMIT 1")
    return found[0][0] if found else None
