from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.lib.problems import PROBLEMS
from tests.docs.pages import PAGES

ROOT = PAGES.parents[1]
EVERY = [Path("README.md"), *sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", EVERY, ids=str)
def test_every_link_to_a_page_leads_to_a_place_in_it(page: Path) -> None:
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()) if "://" not in link]
    parts = {link: link.partition("#") for link in links}
    targets = {link: ((ROOT / page).parent / (path or page.name), place) for link, (path, _, place) in parts.items()}

    assert [link for link, (path, _) in targets.items() if not path.exists()] == []
    assert [link for link, (path, place) in targets.items() if place and place not in anchors(path)] == []


def test_the_page_on_errors_has_every_problem_with_its_status() -> None:
    rows = set(re.findall(r"^\| (\d{3}) \| `([a-z-]+)` \|", (PAGES / "errors.md").read_text(), re.MULTILINE))

    assert rows == {(str(problem.status), slug) for slug, problem in PROBLEMS.items()}


def test_the_first_page_leads_to_all_the_others() -> None:
    first = (PAGES / "README.md").read_text()

    assert [
        page.name for page in PAGES.glob("*.md") if f"]({page.name})" not in first and page.name != "README.md"
    ] == []
