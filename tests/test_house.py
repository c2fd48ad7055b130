"""The house stays in order: packages say what they hold, and each name has one meaning."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
CODE = [path for part in ("app", "workers", "scheduler") for path in sorted((ROOT / part).rglob("*.py"))]
# A noun of the product has one name in each of these layers.
LAYERS = re.compile(r"app/(api|models|commands|domain/bodies)$|workers$|app/web(/\w+)?$")


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


def test_what_locks_some_rows_locks_no_more() -> None:
    """PostgreSQL may run the query of an `IN (…)` once for each row, and each time it locks up to LIMIT other rows."""
    several = re.compile(r"\bIN \(\s*SELECT [^;]{1,400}?\bLIMIT \S+ FOR (NO KEY )?UPDATE\b")
    for path in [*CODE, *(ROOT / "app" / "sql").glob("*.sql")]:
        assert not several.search(path.read_text()), f"{path}: = ANY(ARRAY(SELECT …)) is run once."
