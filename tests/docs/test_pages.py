from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.lib.problems import PROBLEMS
from tests.docs.pages import PAGES

DOCS = PAGES.parent
EVERY = sorted(path.relative_to(DOCS) for path in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", EVERY, ids=str)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    text = (DOCS / page).read_text()
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link and not link.startswith("#")]

    assert [link for link in links if not (DOCS / page).parent.joinpath(link.partition("#")[0]).exists()] == []


def test_the_page_on_errors_has_every_problem_with_its_status() -> None:
    rows = set(re.findall(r"^\| (\d{3}) \| `([a-z-]+)` \|", (PAGES / "errors.md").read_text(), re.MULTILINE))

    assert rows == {(str(problem.status), slug) for slug, problem in PROBLEMS.items()}


def test_the_first_page_leads_to_all_the_others() -> None:
    first = (PAGES / "README.md").read_text()

    assert [
        page.name for page in PAGES.glob("*.md") if f"]({page.name})" not in first and page.name != "README.md"
    ] == []
