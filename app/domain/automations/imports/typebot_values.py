"""Converts Typebot's texts, variables, expressions and comparisons."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from app.domain.automations.imports.sources import NameTable, escaped, listed, mapping, quoted, text
from app.domain.triggers import conditions

_NAMED = re.compile(r"\{\{([^{}]{0,300})\}\}")
_SUM = re.compile(r"\s*\{\{([^{}=]{1,200})\}\}\s*([-+*/])\s*(?:([0-9]+(?:\.[0-9]+)?)|\{\{([^{}=]{1,200})\}\})\s*")
_CODE = re.compile(r"=>|;|\breturn\b|\bconst\b|\blet\b|\bnew\b|`|\w\(|\?.*:|[\])]\s*\.\s*\w|\+\s*[\"']|[\"']\s*\+")
_ENDS_IN_SUM = re.compile(r"[-+*/%]\s*(?:[0-9.]+|\{\{[^{}]*\}\})\s*$")
_FILTERS = {"+": "plus", "-": "minus", "*": "times", "/": "divided_by"}
_DEEPEST = 12
_OPERATORS = {
    "Equal to": "equals",
    "Not equal": "not_equals",
    "Contains": "contains",
    "Does not contain": "not_contains",
    "Greater than": "greater_than",
    "Greater or equal to": "at_least",
    "Less than": "less_than",
    "Less or equal to": "at_most",
    "Starts with": "starts_with",
}


class Variables:
    """Maps a typebot's variables, by identifier or label, to the names of run variables."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._names = NameTable()
        self._labels: dict[str, str] = {}
        for each in listed(document.get("variables"), "'variables'"):
            label = text(each.get("name"))
            self._labels[text(each.get("id"))] = label
            self.of_label(label)

    def of_label(self, label: str) -> str:
        """Returns the name of the variable with this label."""
        return self._names.of(label.strip(), f"v_{label}" if label[:1].isdigit() else label, "variable")

    def of_id(self, identifier: Any) -> str | None:
        """Returns the name of the variable with this identifier; None if there is none."""
        label = self._labels.get(text(identifier))
        return None if label is None else self.of_label(label)

    def template(self, value: Any, lose: Callable[[str], None]) -> str:
        """Converts the text to a template. Leaves out code, and calls `lose` for it."""
        said, made, end = text(value), [], 0
        for found in _NAMED.finditer(said):
            made.append(escaped(said[end : found.start()]))
            end = found.end()
            inner = found[1].strip()
            if inner.startswith("="):
                lose(f"The code {quoted(found[0])} has no equivalent and is left out.")
            elif inner:
                made.append(f"{{{{ run.variables.{self.of_label(inner)} }}}}")
        return "".join([*made, escaped(said[end:])])

    def expression(self, value: Any, lose: Callable[[str], None]) -> str | None:
        """Returns the template for the value of an expression; None if the expression is code."""
        said = text(value)
        if found := _SUM.fullmatch(said):
            filter_, other = _FILTERS[found[2]], found[3]
            other = other or f"run.variables.{self.of_label(found[4])}"
            return f"{{{{ run.variables.{self.of_label(found[1])} | default: 0 | {filter_}: {other} }}}}"
        if _CODE.search(said) or ("{{" in said and _ENDS_IN_SUM.search(said)):
            return None
        return self.template(said, lose)

    def condition(self, content: Any) -> dict[str, Any] | str:
        """Returns the condition of the comparisons, or a sentence why there is none."""
        given = mapping(content)
        made = []
        for each in listed(given.get("comparisons"), "'comparisons'"):
            one = self._comparison(each)
            if isinstance(one, str):
                return one
            made.append(one)
        if not made:
            return "It compares nothing."
        found = made[0] if len(made) == 1 else {"any" if given.get("logicalOperator") == "OR" else "all": made}
        for _, detail in conditions.faults(found):
            return detail
        return found

    def _comparison(self, given: Mapping[str, Any]) -> dict[str, Any] | str:
        name, operator, value = self.of_id(given.get("variableId")), given.get("comparisonOperator"), given.get("value")
        if name is None:
            return "A comparison names no variable."
        field = f"run.variables.{name}"
        if operator in ("Is set", "Is empty"):
            return {"field": field, "is": "exists" if operator == "Is set" else "not_exists"}
        said = text(value)
        if operator in ("Ends with", "Matches regex", "Does not match regex"):
            return self._pattern(field, str(operator), said)
        if operator not in _OPERATORS:
            return f"There is no comparison like '{text(operator)[:40]}'."
        if whole := re.fullmatch(r"\s*\{\{([^{}=]{1,200})\}\}\s*", said):
            return {"field": field, "is": _OPERATORS[operator], "other": f"run.variables.{self.of_label(whole[1])}"}
        if "{{" in said:
            return "It compares with a text that has variables in it."
        if not said:
            exists = operator in ("Not equal", "Contains", "Starts with")
            return {"field": field, "is": "exists" if exists else "not_exists"}
        return {"field": field, "is": _OPERATORS[operator], "value": said}

    def _pattern(self, field: str, operator: str, said: str) -> dict[str, Any] | str:
        if "{{" in said:
            return "It compares with a text that has variables in it."
        if operator == "Ends with":
            return {"field": field, "is": "matches", "value": f"{re.escape(said)}$"}
        if found := re.fullmatch(r"/(.*)/([a-z]*)", said, re.DOTALL):
            said = f"(?i){found[1]}" if "i" in found[2] else found[1]
        matched = {"field": field, "is": "matches", "value": said}
        return matched if operator == "Matches regex" else {"not": matched}


def plain(rich: Any) -> str:
    """Returns the text of rich text, one line per paragraph, with addresses after links."""
    lines = [_words(each, 0) for each in rich] if isinstance(rich, list) else []
    return "\n".join(lines).strip("\n")[:10_000]


def _words(node: Any, depth: int) -> str:
    given = mapping(node)
    if "text" in given:
        return text(given.get("text"))
    if depth == _DEEPEST or not isinstance(given.get("children"), list):
        return ""
    gap = "\n" if given.get("type") in ("ul", "ol") else ""
    inner = gap.join(_words(each, depth + 1) for each in given["children"])
    address = text(given.get("url"))
    if given.get("type") == "a" and address and address != inner.strip():
        return f"{inner} ({address})"
    return f"- {inner}" if given.get("type") == "li" else inner


def response_path(body: str) -> str | None:
    """Returns the path in our responses: `body.items[0]` for `data.items[0]`; None for other code."""
    made = body.strip()
    if re.fullmatch(r"data(\.[A-Za-z_][A-Za-z0-9_]{0,99}|\[[0-9]{1,4}\]){0,20}", made):
        return f"body{made.removeprefix('data')}"
    return "status" if made == "statusCode" else None
