from __future__ import annotations

import time

import pytest

from app.lib.seldom import Seldom


def test_one_passes_in_so_many_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    seldom = Seldom(60.0)
    passed = []

    for second in range(0, 180, 10):
        now[0] = 100.0 + second
        if seldom.is_due():
            passed.append(second)

    assert passed == [0, 60, 120]
