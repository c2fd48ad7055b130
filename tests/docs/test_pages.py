from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.lib import versions
from app.problems import PROBLEMS
from tests.docs.pages import PAGES

ROOT = PAGES.parents[1]
EVERY = [
    *map(Path, ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")),
]
WIDTH = 120
MOST_WORDS_OF_A_DECISION = 300
LARGEST_PICTURE = 150_000  # bytes


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


def test_the_code_has_the_number_of_its_release_or_between_releases_that_of_the_next() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [tuple(map(int, each.partition(" ")[0].split("."))) for each in headings if each != "Unreleased"]
    number = tuple(map(int, versions.NUMBER.split(".")))

    numbers = [number, *released] if "Unreleased" in headings else released
    assert numbers == sorted(set(numbers), reverse=True)
    assert numbers[0] == number
    assert all(len(each) == 3 for each in numbers)


def prose(page: Path) -> list[tuple[int, str]]:
    """The lines of a page, numbered, without its tables and blocks of code."""
    lines, in_code = [], False
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        is_fence = line.lstrip().startswith("```")
        in_code ^= is_fence
        if not (is_fence or in_code or line.startswith("|")):
            lines.append((number, line))
    return lines


def test_prose_is_wrapped() -> None:
    assert [(page, number) for page in EVERY for number, line in prose(page) if len(line) > WIDTH] == []


def test_every_picture_is_shown_and_small() -> None:
    shown = {link for page in EVERY for link in re.findall(r"\]\(pictures/(\S+)\)", (ROOT / page).read_text())}

    assert {path.name for path in (ROOT / "docs" / "pictures").iterdir()} == shown
    assert all(path.stat().st_size <= LARGEST_PICTURE for path in (ROOT / "docs" / "pictures").iterdir())


def test_a_decision_is_short() -> None:
    for page in [page for page in EVERY if page.parent.name == "decisions"]:
        assert len((ROOT / page).read_text().split()) <= MOST_WORDS_OF_A_DECISION, page


def test_the_page_on_errors_has_every_problem_with_its_status() -> None:
    rows = set(re.findall(r"^\| (\d{3}) \| `([a-z-]+)` \|", (PAGES / "errors.md").read_text(), re.MULTILINE))

    assert rows == {(str(problem.status), slug) for slug, problem in PROBLEMS.items()}


def test_the_first_page_leads_to_all_the_others() -> None:
    first = (PAGES / "README.md").read_text()

    assert [
        page.name for page in PAGES.glob("*.md") if f"]({page.name})" not in first and page.name != "README.md"
    ] == []
