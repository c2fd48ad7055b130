"""The house stays in order: the size of files and folders, and one meaning for each name."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CODE = [path for part in ("app", "workers", "scheduler") for path in sorted((ROOT / part).rglob("*.py"))]
FOLDERS = sorted({path.parent for path in CODE})

MOST_LINES = 300
MOST_MODULES = 25
# Plain lists of nouns.
LISTS = {ROOT / "app" / "api", ROOT / "app" / "models", ROOT / "workers"}
MOST_NOUNS = 45

# A noun of the product has one name in each of these layers.
LAYERS = re.compile(r"app/(api|models|commands|domain/bodies)$|workers$|app/web(/\w+)?$")


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MOST_LINES


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_is_not_crowded(folder: Path) -> None:
    modules = [path for path in folder.glob("*.py") if not path.name.startswith("__")]
    packages = [path for path in folder.iterdir() if (path / "__init__.py").exists()]

    assert len(modules) + len(packages) <= (MOST_NOUNS if folder in LISTS else MOST_MODULES)


def test_a_package_of_the_domain_says_what_is_in_it() -> None:
    for package in (ROOT / "app" / "domain").glob("*/__init__.py"):
        assert package.read_text().startswith('"""'), package


def test_a_name_that_stands_in_several_packages_is_in_the_glossary() -> None:
    places = defaultdict(set)
    for path in CODE:
        if not path.name.startswith("__"):
            folder = str(path.parent.relative_to(ROOT))
            places[path.stem].add("" if LAYERS.match(folder) else folder)
    explained = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "glossary.md").read_text()))

    namesakes = {name: sorted(where - {""}) for name, where in places.items() if len(where - {""}) > 1}
    assert {name: where for name, where in namesakes.items() if name not in explained} == {}
