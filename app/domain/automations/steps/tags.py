"""Shared by the steps that change tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.automations.steps.base import Moment, StepFailed
from app.errors import Fault
from app.lib import normalization

FIELDS: Mapping[str, Mapping[str, Any]] = {
    "tag": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The tag; a template."}
}


def rendered(moment: Moment) -> str:
    """The step's tag. Raises StepFailed if the text is none."""
    try:
        return normalization.tag(moment.render(moment.step.fields["tag"]))
    except ValueError as error:
        raise StepFailed("error", str(error)) from error


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields what is wrong with a tag that is not a template."""
    tag = step.get("tag")
    if isinstance(tag, str) and "{" not in tag:
        try:
            normalization.tag(tag)
        except ValueError as error:
            yield Fault(f"{pointer}/tag", str(error))
