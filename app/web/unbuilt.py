"""Places that are not built yet. To be deleted."""

from __future__ import annotations

from flask import Flask, render_template

from app.web.access import page, staff

W = "/workspaces/<workspace>"
PLACES = {
    "overviews.show": f"{W}/dashboard",
    "failures.show": f"{W}/dashboard/failures",
    "searches.show": f"{W}/dashboard/search",
    "member_pages.index": f"{W}/settings/members",
    "audit_pages.index": f"{W}/settings/audit",
    "account_pages.show": "/account",
    "overviews.show_all": "/dashboard",
    "failures.show_all": "/dashboard/failures",
    "searches.show_all": "/dashboard/search",
    "workspace_pages.index": "/dashboard/workspaces",
}


def install(pages: Flask) -> None:
    """Gives each place that has no page yet an address, so that links to it can be written."""
    for endpoint, rule in PLACES.items():
        if endpoint in pages.view_functions:
            continue
        view = (page("dashboard.see") if W in rule else staff)(lambda **_: render_template("unbuilt.html"))
        pages.add_url_rule(rule, endpoint, view)
