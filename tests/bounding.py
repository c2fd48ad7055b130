"""Bounds for tests: the same, with another figure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app import bounds


def set_bound(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    """Gives the bound of that constant another figure for the length of a test."""
    monkeypatch.setattr(bounds, name, replace(getattr(bounds, name), most=most))
