"""Recipes: example automations that the guides show and the pages offer as templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from app.domain.automations.imports import automation_files
from app.domain.automations.imports.sources import Imported
from app.errors import NotFound
from app.lib import json


@dataclass(frozen=True, slots=True)
class Recipe:
    """An example automation. `sentence`: about the automation. `needs`: values for users to fill in.

    `body`: the API body that creates it. It may name members, segments and automations that do not exist.
    """

    id: str
    title: str
    sentence: str
    needs: Sequence[str]
    body: Mapping[str, Any]

    def read(self) -> Imported:
        """Reads the automation like an imported file."""
        return automation_files.read(self.body)


@cache
def all_recipes() -> Sequence[Recipe]:
    """Returns all recipes, in the order of the guides."""
    return tuple(Recipe(**each) for each in json.loads(Path(__file__).with_suffix(".json").read_bytes()))


def find(recipe_id: str) -> Recipe:
    """Returns the recipe. Raises NotFound."""
    for each in all_recipes():
        if each.id == recipe_id:
            return each
    raise NotFound("There is no such template.")
