"""The page that explains the sentences."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from app.lib.addresses import NEVER_DIALLED_V4, NEVER_DIALLED_V6
from app.outbound import Reason
from app.outbound.answers import ERROR_CODES
from tests.app.outbound.world import (
    ROOT,
)


def sentences(path: Path) -> set[str]:
    """Every sentence in a module's code, with "…" for what is filled in."""
    tree = ast.parse(path.read_text())
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
            found.add(re.sub("…+", "…", "".join(pieces)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (parts | prose):
            found.add(node.value)
    return {text for text in found if re.fullmatch("[A-Z…].* .*[.]", text)}


def test_the_page_explains_every_sentence_with_its_code_and_no_other() -> None:
    page = (ROOT / "docs" / "outbound.md").read_text()
    explained = set(re.findall(r"^\| `(\w+)` \| `(.+?)` \| .+ \| .+ \|$", page, re.MULTILINE))
    refusals = {(Reason.BAD_ADDRESS.code, sentence) for sentence in sentences(ROOT / "app/lib/addresses.py")}
    others = {(each.code, each.template.replace("{}", "…")) for each in Reason if each is not Reason.BAD_ADDRESS}
    assert explained == refusals | others


def test_every_code_has_a_sentence() -> None:
    assert {each.code for each in Reason} == set(ERROR_CODES)


def test_the_page_has_every_network_that_is_never_dialled() -> None:
    page = (ROOT / "docs" / "outbound.md").read_text()
    assert [str(network) for network in NEVER_DIALLED_V4 + NEVER_DIALLED_V6 if f"`{network}`" not in page] == []
