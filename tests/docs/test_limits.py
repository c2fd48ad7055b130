"""`docs/limits.md` lists every bound, with its figure."""

from __future__ import annotations

import re

from app import bounds
from tests.docs.pages import PAGES

LIMITS = (PAGES.parent / "limits.md").read_text()
ROWS = re.findall(r"^\| `([a-z_]+)` \| ([\d,]+) \| ([^|]+) \| \S[^|]* \|$", LIMITS, re.MULTILINE)


def test_the_page_has_each_bound_with_its_figure() -> None:
    assert [(bound.name, f"{bound.most:,}", bound.unit) for bound in bounds.ALL] == ROWS


def test_no_two_bounds_have_one_name() -> None:
    assert len({bound.name for bound in bounds.ALL}) == len(bounds.ALL)
