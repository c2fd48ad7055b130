"""The code blocks in the pages for integrators."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).parents[2] / "docs" / "integrate"


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a language on a page, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (PAGES / page).read_text(), re.DOTALL | re.MULTILINE)
