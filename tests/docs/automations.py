"""The guide to automations, and its recipes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from app.lib import json

PAGE = Path(__file__).parents[2] / "docs" / "automations.md"


def recipes() -> dict[str, dict[str, Any]]:
    """The bodies of the recipes by their headings."""
    found = re.findall(r"^### (\d+\. .+?)\n(.*?)(?=^###? |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return {name: _body(text) for name, text in found}


def _body(text: str) -> dict[str, Any]:
    [block] = re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return dict(json.loads(block))
