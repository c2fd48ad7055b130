"""The section on steps in docs/automations.md, made from the table of kinds.

`python -m tests.docs.steps` writes it anew.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import StepKind
from tests.docs.automations import PAGE

BEGIN, END = "<!-- steps: made by tests/docs/steps.py -->\n", "<!-- end of steps -->\n"
_TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "null",
    "object": "object",
    "array": "list",
}


def section() -> str:
    """What stands between the marks."""
    return "\n" + "\n".join(_paragraph(name, kind) for name, kind in sorted(STEP_KINDS.items()))


def written() -> str:
    """What stands there now."""
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0]


def _paragraph(name: str, kind: StepKind) -> str:
    parts = [f"### `{name}`", "\n".join(textwrap.wrap(kind.description, 120, break_on_hyphens=False))]
    if rows := list(_rows(kind)):
        parts.append("\n".join(("| Field | Value | |", "|---|---|---|", *rows)))
    example = {"id": "step", "kind": name, **kind.example}
    parts.append(f"```json\n{json.dumps(example, indent=2)}\n```")
    return "\n\n".join(parts) + "\n"


def _rows(kind: StepKind) -> Iterator[str]:
    for field in (*kind.fields, *(name for name in kind.lists if name not in kind.fields)):
        schema = kind.fields.get(field, {})
        value = _value(schema)
        if field in kind.templates:
            is_text = value.startswith("text")
            value = f"template{value[4:]}" if is_text else f"{value}; strings in it are templates"
        if field in kind.conditions or "$ref" in schema:
            value = "condition"
        elif field in kind.lists:
            value = "list of steps"
        needed = "**required**; " if field in kind.required else ""
        yield f"| `{field}` | {needed}{value} | {schema.get('description', '')} |".replace("|  |", "| |")


def _value(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return _or([f"`{value}`" for value in schema["enum"]])
    given = schema.get("type", [])
    types = [_TYPES[name] for name in ([given] if isinstance(given, str) else given)]
    limits = f", {schema['minimum']:,} to {schema['maximum']:,}" if "maximum" in schema else ""
    return (_or(types) if types else "any JSON") + limits


def _or(listed: Sequence[str]) -> str:
    return f"{', '.join(listed[:-1])} or {listed[-1]}" if len(listed) > 1 else listed[0]


if __name__ == "__main__":
    page = PAGE.read_text()
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: BEGIN + section() + END, page, flags=re.DOTALL))
