"""The list of guards is true: each stands once where it says, and its tests exist."""

from __future__ import annotations

import pytest

from tests.guards import GUARDS, ROOT, Guard


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.what)
def test_a_guard_stands_where_the_list_says(guard: Guard) -> None:
    assert (ROOT / guard.file).read_text().count(guard.text) == 1
    assert [name for name in guard.tests.split() if not (ROOT / name).exists()] == []
