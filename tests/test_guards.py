"""The list of guards is true: each stands once where it says, and its tests exist."""

from __future__ import annotations

from tests.guards import GUARDS, ROOT


def test_each_guard_stands_where_the_list_says() -> None:
    for guard in GUARDS:
        assert (ROOT / guard.file).read_text().count(guard.text) == 1, guard.what
        assert [name for name in guard.tests.split() if not (ROOT / name).exists()] == [], guard.what
