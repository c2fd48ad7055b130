"""Periods of time, as an address names them."""

from __future__ import annotations

from flask import request

from app.domain.insight.trends import DEFAULT, WINDOWS, Window
from app.web.lists import address


def chosen() -> Window:
    """The window that the address asks for; the default if it is unknown."""
    return WINDOWS.get(request.args.get("window", ""), DEFAULT)


def links() -> list[tuple[Window, str]]:
    """Every window with the address of this page for it."""
    return [(window, address(window=None if window is DEFAULT else window.name)) for window in WINDOWS.values()]
