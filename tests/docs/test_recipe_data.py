"""The templates that pages offer are the recipes that the guides show."""

from __future__ import annotations

from app.domain.automations import recipes
from tests.docs.automations import FURTHER
from tests.docs.automations import recipes as shown_on


def test_the_guides_show_the_templates_in_their_order() -> None:
    shown = {**shown_on(), **shown_on(FURTHER)}
    offered = recipes.all_recipes()

    assert [f"{number}. {recipe.title}" for number, recipe in enumerate(offered, 1)] == list(shown)
    assert [dict(recipe.body) for recipe in offered] == list(shown.values())


def test_each_says_what_it_does_in_a_sentence() -> None:
    for recipe in recipes.all_recipes():
        assert recipe.sentence.endswith(".")
        assert len(recipe.sentence) < 120
        assert all(need[0].islower() and not need.endswith(".") for need in recipe.needs)
