"""Limits Liquid: what a template can reach, and how many steps it may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, TextIO

from liquid import Environment
from liquid.ast import Node
from liquid.builtin import content, illegal, output
from liquid.builtin.expressions import FilteredExpression, LoopExpression, Path
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.tags import (
    assign_tag,
    capture_tag,
    case_tag,
    comment_tag,
    cycle_tag,
    decrement_tag,
    echo_tag,
    for_tag,
    if_tag,
    increment_tag,
    inline_comment_tag,
    unless_tag,
)
from liquid.context import RenderContext
from liquid.exceptions import LiquidError
from liquid.parser import get_parser
from liquid.stream import TokenStream
from liquid.template import BoundTemplate
from liquid.token import TOKEN_DOT, TOKEN_OUTPUT, TOKEN_WORD, Token
from liquid.utils import ReadOnlyChainMap

from app.lib import template_filters

MOST_OUTPUT_BYTES = 64 * 1024
MOST_STEPS = 25_000
MOST_NAMES = 100
LONGEST_RANGE = 10_000

TAGS = (
    *(assign_tag.AssignTag, capture_tag.CaptureTag, case_tag.CaseTag, comment_tag.CommentTag, cycle_tag.CycleTag),
    *(decrement_tag.DecrementTag, if_tag.IfTag, increment_tag.IncrementTag, unless_tag.UnlessTag),
    *(for_tag.BreakTag, for_tag.ContinueTag, inline_comment_tag.InlineCommentTag),
)


class Exhausted(LiquidError):
    """The template exceeds a limit on steps, assigned names or the length of a range."""


class Context(RenderContext):
    """The state of one rendering. `spent`: the steps so far; `missing`: names that printed nothing."""

    __slots__ = ("missing", "spent")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Leaves out the library's `now` and `today`, which are in the server's own time zone.
        self.scope = ReadOnlyChainMap(self.locals, self.globals, self.counters)
        self.spent = 0
        self.missing: dict[str, None] = {}  # names from outside the template that printed nothing

    def spend(self, steps: int) -> None:
        """Counts the steps. Raises LiquidError once the budget is spent."""
        self.spent += steps
        if self.spent > MOST_STEPS:
            raise Exhausted("it takes too many steps; use fewer or shorter loops", token=None)

    def get(self, path: list[object], **options: Any) -> object:
        """Returns the value at the path. Spends steps by its size."""
        found = super().get(path, **options)
        self.spend(1 + template_filters.cost(found) // 4)
        return found

    def get_item(self, obj: Any, key: Any) -> Any:
        """Returns the member of a JSON value. Raises KeyError for any other object."""
        if not isinstance(obj, (Mapping, list, str, range)):
            raise KeyError(key)
        return super().get_item(obj, key)

    def note_nothing(self, expression: FilteredExpression) -> None:
        """Notes the expression's name as missing, unless the template assigns it or gives a default."""
        path = getattr(expression, "left", None)
        filters = getattr(expression, "filters", None) or ()
        if (
            isinstance(path, Path)
            and path.path[0] not in self.locals
            and all(each.name != "default" for each in filters)
        ):
            self.missing[str(path)] = None

    def assign(self, key: str, val: Any) -> None:
        """Assigns a name within the template. Raises LiquidError if there are more than MOST_NAMES."""
        if key not in self.locals and len(self.locals) >= MOST_NAMES:
            raise Exhausted(f"it assigns more than {MOST_NAMES} names", token=None)
        self.locals[key] = val


class Template(BoundTemplate):
    """A parsed template. `weight`: the steps to render it with one iteration of each loop."""

    context_class = Context
    weight = 0

    def render_counted(self, variables: Mapping[str, Any]) -> tuple[str, Context]:
        """Renders the text; also returns the final context. Raises LiquidError, and errors of filters."""
        context, buffer = Context(self, globals=variables), self._get_buffer()
        context.spend(self.weight)
        self.render_with_context(context, buffer)
        return buffer.getvalue(), context


class _Loop(LoopExpression):
    """The items of a loop. Each iteration costs the weight of the loop's body."""

    __slots__ = ("weight",)

    def __init__(self, of: LoopExpression) -> None:
        super().__init__(
            of.token, of.identifier, of.iterable, limit=of.limit, offset=of.offset, reversed_=of.reversed, cols=None
        )
        self.weight = 1

    def evaluate(self, context: RenderContext) -> tuple[Iterator[object], int]:
        elements, length = super().evaluate(context)
        return self._paid(elements, context), length

    def _paid(self, elements: Iterator[object], context: Any) -> Iterator[object]:
        for element in elements:
            context.spend(self.weight)
            yield element


class ForNode(for_tag.ForNode):
    """A loop that pays for each iteration. Raises LiquidError once the budget is spent."""

    def __init__(self, token: Any, expression: LoopExpression, block: Any, default: Any = None) -> None:
        self.loop = _Loop(expression)
        super().__init__(token, self.loop, block, default)


class _ForTag(for_tag.ForTag):
    node_class = ForNode


class Range(RangeLiteral):
    """A range that is refused if it is long, because filters and loops may turn it into a list."""

    __slots__ = ()

    def _make_range(self, start: Any, stop: Any) -> range:
        made = super()._make_range(start, stop)
        if made.stop - made.start > LONGEST_RANGE:
            raise Exhausted(f"a range has more than {LONGEST_RANGE:,} elements", token=self.token)
        return made


class _OutputNode(output.OutputNode):
    def render_to_output(self, context: Any, buffer: TextIO) -> int:
        text = template_filters.text_of(self.expression.evaluate(context))
        if not text:
            context.note_nothing(self.expression)
        return buffer.write(text)


class _EchoNode(_OutputNode, echo_tag.EchoNode):
    pass


class _Output(output.Output):
    node_class = _OutputNode

    def parse(self, stream: TokenStream) -> output.OutputNode:
        token = stream.eat(TOKEN_OUTPUT)
        return self.node_class(token, FilteredExpression.parse(self.env, stream.into_inner(eat=False)))


class _EchoTag(echo_tag.EchoTag):
    node_class = _EchoNode


class _Tokens(TokenStream):
    """Reads a word after a dot as a name, even a word with a meaning in Liquid, such as `limit`."""

    def into_inner(self, *, tag: Token | None = None, eat: bool = True) -> TokenStream:
        inner = super().into_inner(tag=tag, eat=eat)
        for index, (before, token) in enumerate(pairwise(inner.tokens), 1):
            if before.kind == TOKEN_DOT and token.kind == token.value and token.value.isidentifier():
                inner.tokens[index] = token._replace(kind=TOKEN_WORD)
        return inner


class LimitedEnvironment(Environment):
    """An environment with only the tags and filters of Bellhop: no tag can read other templates."""

    output_stream_limit = MOST_OUTPUT_BYTES

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:
        """Registers the tags and filters."""
        for tag in (content.Literal, _Output, illegal.Illegal, _ForTag, _EchoTag, *TAGS):
            self.add_tag(tag)
        self.filters |= template_filters.FILTERS

    def _parse(self, source: str) -> list[Node]:
        return get_parser(self).parse(_Tokens(self.tokenizer()(source)))
