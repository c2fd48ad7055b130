"""Spans that are kept in place of being sent, so that tests need no package for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from app.logs import tracing


class Span(NamedTuple):
    name: str
    kind: str
    trace_id: str
    span_id: int
    parent_id: int | None
    times: tuple[float, float]
    attributes: Mapping[str, Any]
    error: str | None = None
    linked: tuple[str, int] | None = None


class Kept:
    """What has been added since tracing was turned on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.added: list[Span] = []
        monkeypatch.setattr(tracing, "spans", self)

    def add(self, *span: Any) -> None:
        self.added.append(Span(*span))

    def is_sampled(self, _: str) -> bool:
        return True

    def named(self, name: str) -> Span:
        [span] = [each for each in self.added if each.name == name]
        return span
