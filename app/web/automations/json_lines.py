"""Indents JSON for editing, and finds the line of a pointer."""

from __future__ import annotations

from typing import Any

import orjson

_MARK = "\N{REPLACEMENT CHARACTER}here"


def pretty(value: Any) -> str:
    """Returns the value as indented JSON, in the format that `line_of` expects."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def line_of(text: str, value: Any, pointer: str) -> int | None:
    """Returns the line where the value at `pointer` (or its nearest parent) begins in `text`.

    None if the text is not formatted as `pretty` does.
    """
    if text.strip() != pretty(value).strip():
        return None
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    while (marked := _marked(value, parts)) is None:
        parts.pop()
    return pretty(marked).partition(_MARK)[0].count("\n") + 1


def _marked(value: Any, parts: list[str]) -> Any:
    """Returns the value with a mark at the path `parts`; None if there is nothing at that path."""
    if not parts:
        return _MARK
    name, rest = parts[0], parts[1:]
    if isinstance(value, dict) and name in value:
        inner = _marked(value[name], rest)
        return None if inner is None else {**value, name: inner}
    if isinstance(value, list) and name.isascii() and name.isdigit() and int(name[:9]) < len(value):
        inner = _marked(value[int(name)], rest)
        return None if inner is None else [*value[: int(name)], inner, *value[int(name) + 1 :]]
    return None
