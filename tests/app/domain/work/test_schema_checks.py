"""Values checked against JSON Schemas, with sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.channels import kinds
from app.domain.automations import steps
from app.domain.work import schema_checks


def with_patterns(schema: Any) -> Iterator[dict[str, Any]]:
    """The schemas with a pattern, at any depth."""
    if isinstance(schema, dict):
        if "pattern" in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from with_patterns(each)


def test_text_of_the_wrong_form_is_refused_in_words() -> None:
    telegram = kinds.CHANNEL_KINDS["telegram"].credentials_schema

    [fault] = schema_checks.faults({"bot_token": "secret"}, telegram, "/credentials")

    assert (fault.pointer, fault.detail) == ("/credentials/bot_token", "Give a bot token, such as '123456789:AAE…'.")


def test_every_pattern_that_is_checked_has_words() -> None:
    of_channels = [
        each for kind in kinds.CHANNEL_KINDS.values() for each in (kind.settings_schema, kind.credentials_schema)
    ]
    of_steps = [dict(kind.fields) for kind in steps.STEP_KINDS.values()]

    found = list(with_patterns([*of_channels, *of_steps]))

    assert len(found) >= 8
    assert [each for each in found if "x-form" not in each] == []
