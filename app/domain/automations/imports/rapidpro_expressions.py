"""Converts RapidPro's expressions: in texts to templates, in routers to paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from app.domain.automations.imports.sources import escaped, name_of, quoted

_TOPS = "contact|fields|results|input|urns|webhook|locals|child|parent|trigger|globals|run|node|resume|ticket|urn"
_QUOTE = r'"(?:[^"\\]|\\.){0,300}"'
# All lengths are bounded. Otherwise, a hostile text would take quadratic time.
_EXPRESSION = re.compile(
    rf"@@|@\((?P<code>(?:[^()\"]|{_QUOTE}|\((?:[^()\"]|{_QUOTE}|\([^()]{{0,200}}\)){{0,200}}\)){{0,300}})\)"
    rf"|@(?P<path>(?:{_TOPS}|legacy_extra)(?:\.[A-Za-z0-9_]+){{0,8}})"
)
# Templates for names that have no path in _PATHS, or that print more than the value at their path.
_TEMPLATES = {
    "contact.name": "{{ contact.first_name }} {{ contact.last_name }}",
    "contact.id": "{{ contact.id }}",
    "contact.uuid": "{{ contact.id }}",
    "contact.groups": '{{ contact.tags | join: ", " }}',
}
_PATHS = {
    "contact": "contact.first_name",
    "contact.name": "contact.first_name",
    "contact.first_name": "contact.first_name",
    "contact.language": "contact.locale",
    "contact.groups": "contact.tags",
    "contact.timezone": "contact.timezone",
    "contact.created_on": "contact.created_at",
    "contact.urn": "contact.phone",
}
_URNS = {"tel": "phone", "mailto": "email", "ext": "external_id", "whatsapp": "phone"}
_FILTERS = {"upper": "upcase", "lower": "downcase", "title": "capitalize", "url_encode": "url_encode", "json": "json"}
_CALL = re.compile(r"(?P<name>[a-z_]+)\((?P<inner>[a-z_.0-9A-Z]+)\)", re.IGNORECASE)
_NUMBERED = re.compile(r"\.([0-9]+)(?=\.|$)")
_PLAIN = re.compile(r"[a-z_]+(\.[A-Za-z0-9_]+)*")
_DEFAULT = re.compile(r"default\((?P<inner>[a-z_.0-9A-Z]+), *(?:\"[^\"]*\"|[0-9.]+)\)")


def path_of(expression: str, reply: str | None = None) -> str | None:
    """Returns the path that a router's expression becomes; None if it has no equivalent.

    `reply`: the step that waits for a reply before the router; None if none does.
    """
    found = expression.strip()
    if found.startswith("@(") and found.endswith(")"):
        found = found[2:-1].strip()
        if call := _DEFAULT.fullmatch(found):
            found = call["inner"]
    else:
        found = found.removeprefix("@")
    return _path(found, reply) if _PLAIN.fullmatch(found) else None


def template_of(text: str, lose: Callable[[str], None]) -> str:
    """Converts the text to a template. Calls `lose` for each expression that has no equivalent."""
    made, end = [], 0
    for found in _EXPRESSION.finditer(text):
        made.append(escaped(text[end : found.start()]))
        end = found.end()
        if found[0] == "@@":
            made.append("@")
            continue
        said = _template(found["path"] or "") if found["path"] else _code(found["code"] or "")
        if said is None:
            lose(f"The expression {quoted(found[0])} has no equivalent and is left out.")
        made.append(said or "")
    return "".join([*made, escaped(text[end:])])


def _path(name: str, reply: str | None) -> str | None:
    name = name.lower() if name.startswith(("results", "fields", "locals")) else name
    if name in ("input", "input.text"):
        return f"steps.{reply}.text" if reply else "run.variables.input"
    if name in _PATHS:
        return _PATHS[name]
    top, _, rest = name.partition(".")
    if top == "contact" and rest.startswith("fields."):
        top, rest = "fields", rest.removeprefix("fields.")
    if top == "fields" and rest:
        return f"contact.custom_fields.{rest.partition('.')[0]}"
    if top == "urns" and rest in _URNS:
        return f"contact.{_URNS[rest]}"
    return _variable(top, rest)


def _variable(top: str, rest: str) -> str | None:
    """Returns the path of a result, a local or the last response; None for any other value."""
    first, _, last = rest.partition(".")
    if top == "results" and first:
        endings: Mapping[str, str] = {"": "", "value": "", "input": "", "category": "_category"}
        ending = endings.get("category" if last == "category_localized" else last)
        return None if ending is None else f"run.variables.{result_name(first)}{ending}"
    if top == "locals" and first and not last:
        return f"run.variables.{result_name(first)}"
    if top == "webhook":
        if rest == "status":
            return "run.variables.webhook_status"
        inside = rest.removeprefix("json").lstrip(".")
        return f"steps.webhook.{inside}" if inside else "steps.webhook"
    return None


def result_name(name: str) -> str:
    """Returns the name of the variable that holds the result `name`."""
    made = name_of(name, "result")
    return made if made[0].isalpha() else f"r_{made}"


def _template(name: str) -> str | None:
    if name in _TEMPLATES:
        return _TEMPLATES[name]
    path = _path(name, None)
    return None if path is None else "{{ " + _NUMBERED.sub(r"[\1]", path) + " }}"


def _code(code: str) -> str | None:
    """Converts an expression in parentheses: a name, or one function of a name. None for any other."""
    code = code.strip()
    if _PLAIN.fullmatch(code):
        return _template(code)
    if call := _DEFAULT.fullmatch(code):
        return _template(call["inner"])
    call = _CALL.fullmatch(code)
    if call is None:
        return None
    name = call["name"].lower()
    if name in ("text", "format", "format_urn"):
        return _template(call["inner"])
    path = _path(call["inner"], None)
    return None if path is None or name not in _FILTERS else f"{{{{ {path} | {_FILTERS[name]} }}}}"
