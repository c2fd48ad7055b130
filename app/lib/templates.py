"""Templates: renders Liquid templates, which strangers write, within limits.

Every limit counts characters, elements or steps, never seconds, so whether a template renders does not depend on how
busy the machine is. A template can reach only the members of plain JSON values, never attributes of objects.

The result is text, not HTML: it goes into messages, requests and fields, where people would see the escapes. A page
that shows the text must escape it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from liquid.ast import Node
from liquid.builtin.expressions import FilteredExpression
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.tags.case_tag import MultiExpressionBlockNode
from liquid.builtin.tags.for_tag import BreakNode, ContinueNode
from liquid.context import RenderContext
from liquid.exceptions import LiquidError, LiquidSyntaxError, OutputStreamLimitError
from liquid.expression import Expression

from app.lib import template_filters
from app.lib.caches import Cache
from app.lib.liquids import MOST_OUTPUT_BYTES, MOST_STEPS, TAGS, Context, ForNode, LimitedEnvironment, Range, Template

LONGEST_TEMPLATE = 16 * 1024
LONGEST_TAG = 1_000
# The total weight of parsed templates that a process keeps, and of the names found in templates.
MOST_KEPT = 50_000

_OPENING = re.compile(r"\{\{|\{%")
_NAME = re.compile(r"-?\s*+(\w*)", re.ASCII)
_WORD = re.compile(r"\w+|[^\w\s]")
_GAP = re.compile(r"\s{100}")
_END_OF_RAW = re.compile(r"\{%-?\s*+endraw\s*+-?%\}")
# Names in `{% … %}` that the environment does not list as tags: parts of tags, `raw`, and no name at all.
_INNER = frozenset({"elsif", "else", "when", "raw", "endraw", ""})


# Rendering costs this many steps to begin with, and one for each character of the template.
BEGINNING = 20


class TemplateError(ValueError):
    """The template cannot be read or rendered; the text says where and why."""


class Overspent(Exception):
    """Several templates together take more steps than they may."""


class TooLong(Exception):
    """The rendered strings of a value are together longer than they may be."""


class Budget:
    """How many steps several templates may take together. `missing`: names that printed nothing."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.spent = 0
        self.missing: dict[str, None] = {}

    def spend(self, steps: int) -> None:
        """Counts the steps. Raises Overspent once more than `most` are spent."""
        self.spent += steps
        if self.spent > self.most:
            raise Overspent


def check(template: str) -> None:
    """Raises TemplateError if the template cannot be read, or could never be rendered."""
    if "{" in template or len(template) > LONGEST_TEMPLATE:
        _parsed(template)


def named(template: str) -> list[list[str]]:
    """Returns the variables that the template names, each once, as paths. Raises like `check`.

    A path ends where its next part is computed. Leaves out names that the template itself assigns.
    """
    if "{" not in template:
        check(template)
        return []
    named_in = _NAMED.get(template)
    if named_in is None:
        found = _parsed(template).analyze(include_partials=False).globals
        paths: dict[tuple[Any, ...], None] = dict.fromkeys(
            tuple(takewhile(lambda part: isinstance(part, str), path.segments))
            for uses in found.values()
            for path in uses
        )
        named_in = [list(path) for path in paths]
        _NAMED.put(template, named_in, 1 + len(template) // 100 + len(named_in))
    return named_in


def words_of(template: str) -> int:
    """Counts the words and signs in the template's tags, and the tags: the cost of parsing it."""
    words, position = 0, 0
    while opening := _OPENING.search(template, position):
        end = template.find("}}" if opening.group() == "{{" else "%}", opening.end())
        if end < 0:
            break
        words += 1 + len(_WORD.findall(template, opening.end(), end))
        position = end + 2
    return words


def render(template: str, variables: Mapping[str, Any], budget: Budget | None = None) -> str:
    """Renders the template with the variables, which are JSON values. A missing name prints nothing.

    Removes U+0000, which PostgreSQL cannot store. Raises TemplateError, and Overspent.
    """
    if "{" not in template:
        return template.replace("\x00", "")
    if budget is not None:
        budget.spend(BEGINNING + len(template))
    parsed = _PARSED.get(template)
    if parsed is None:
        parsed = _parsed(template)
        _PARSED.put(template, parsed, parsed.weight)
    try:
        text, ended = parsed.render_counted(variables)
    except LiquidError as error:
        raise TemplateError(_sentence("rendered", error)) from error
    except Exception as error:  # Python's own errors, which the library does not foresee
        raise TemplateError(f"The template cannot be rendered: a filter failed ({type(error).__name__}).") from error
    if budget is not None:
        budget.missing |= ended.missing
        budget.spend(ended.spent)
    return text.replace("\x00", "")


def fill(value: Any, render: Callable[[str], str], most_bytes: int) -> Any:
    """Returns a copy of the value with its strings rendered. Raises TooLong above `most_bytes`."""
    left = most_bytes

    def filled(each: Any) -> Any:
        nonlocal left
        if isinstance(each, str):
            text = render(each)
            left -= len(text.encode())
            if left < 0:
                raise TooLong
            return text
        if isinstance(each, dict):
            return {name: filled(inner) for name, inner in each.items()}
        return [filled(inner) for inner in each] if isinstance(each, list) else each

    return filled(value)


_ENVIRONMENT = LimitedEnvironment()
_PARSED: Cache[str, Template] = Cache(MOST_KEPT)
_NAMED: Cache[str, list[list[str]]] = Cache(MOST_KEPT)


def _parsed(source: str) -> Template:
    """Parses and weighs a template. Raises TemplateError."""
    if len(source) > LONGEST_TEMPLATE:
        raise TemplateError(f"A template has at most {LONGEST_TEMPLATE:,} characters.")
    _refuse_open(source)
    try:
        template = Template(_ENVIRONMENT, _ENVIRONMENT.from_string(source).nodes)
        context = Context(template)
        template.weight = sum(_weigh(node, context) for node in template.nodes)
    except LiquidError as error:
        raise TemplateError(_sentence("read", error.__cause__ or error)) from error
    except RecursionError as error:
        raise TemplateError("The template cannot be read: it is nested too deeply.") from error
    if template.weight > MOST_STEPS:
        raise TemplateError("The template takes too many steps: make it shorter.")
    return template


def _refuse_open(source: str) -> None:
    """Raises TemplateError for tags that are unknown, too long or not closed.

    The library searches for the end of such a tag again and again, which takes minutes for a hostile template.
    """
    position = 0
    while opening := _OPENING.search(source, position):
        begin, closing = opening.end(), "}}" if opening.group() == "{{" else "%}"
        end = source.find(closing, begin)
        if end < 0:
            raise TemplateError(f"The template cannot be read: {_place(source, begin)} is not closed with '{closing}'.")
        if end - begin > LONGEST_TAG or _GAP.search(source, begin, end):
            raise TemplateError(f"The template cannot be read: {_place(source, begin)} is too long.")
        position = end + 2
        if closing == "%}":
            name = _refuse_unknown(source, begin)
            if name == "raw":
                ending = _END_OF_RAW.search(source, position)
                if ending is None:
                    raise TemplateError("The template cannot be read: {% raw %} is not closed with '{% endraw %}'.")
                position = ending.end()


def _weigh(node: Node, context: RenderContext, is_looped: bool = False) -> int:
    """Returns the steps to render the node with one iteration of each loop. Raises LiquidError."""
    if isinstance(node, (BreakNode, ContinueNode)) and not is_looped:
        raise LiquidSyntaxError("it is not in a loop", token=node.token)
    weight, times = 1 + len(node.token.value) // 64, 1
    for expression in node.expressions():
        weight += _count(expression)
        if isinstance(node, MultiExpressionBlockNode):  # rendered once for each expression that matches
            times = len(list(expression.children()))
    is_looped = is_looped or isinstance(node, ForNode)
    weight += times * sum(_weigh(child, context, is_looped) for child in node.children(context))
    if isinstance(node, ForNode):
        node.loop.weight = weight
    return weight


def _count(expression: Expression) -> int:
    """Counts the parts of an expression. Raises LiquidError if a filter or its arguments are wrong."""
    counted, pending = 0, [expression]
    while pending:
        counted, each = counted + 1, pending.pop()
        if isinstance(each, RangeLiteral):
            each.__class__ = Range  # the library's parser makes plain ranges
        if isinstance(each, FilteredExpression):
            for used in each.filters or ():
                template_filters.check(used)
        pending += each.children()
    return counted


def _refuse_unknown(source: str, begin: int) -> str:
    """Returns the name of the tag at `begin`. Raises TemplateError if there is no such tag."""
    found = _NAME.match(source, begin)
    name = found.group(1) if found else ""
    if name not in _ENVIRONMENT.tags and name not in _INNER and not name.startswith("end"):
        known = ", ".join(sorted({tag.name for tag in TAGS if tag.name.isalpha()} | {"for", "echo", "raw"}))
        raise TemplateError(f"There is no tag '{name}': see {_place(source, begin)}. The tags are {known}.")
    return name


def _place(source: str, begin: int) -> str:
    line, column = source.count("\n", 0, begin) + 1, begin - 2 - source.rfind("\n", 0, begin)
    return f"the tag at line {line}, column {column}"


def _sentence(verb: str, error: BaseException) -> str:
    if not isinstance(error, LiquidError):
        return f"The template cannot be {verb}: it is too long or nested too deeply."
    if isinstance(error, OutputStreamLimitError):
        return f"The template cannot be rendered: the text has more than {MOST_OUTPUT_BYTES:,} bytes."
    place = error.context()
    at = f" at line {place[0]}, column {place[1] + 1}" if place else ""
    return f"The template cannot be {verb}{at}: {error.message}."
