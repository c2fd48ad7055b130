"""Converts Typebot exports (versions 3 to 6) to definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.automations.imports import conversions, typebot_inputs
from app.domain.automations.imports.flow_graphs import SOURCE, Element, Graph, Link
from app.domain.automations.imports.sources import (
    MOST_PARTS,
    Imported,
    NameTable,
    Unreadable,
    listed,
    mapping,
    quoted,
    text,
)
from app.domain.automations.imports.typebot_blocks import Block, Reading, steps_of
from app.domain.automations.imports.typebot_values import Variables

KIND = "typebot"
_START = "start"


def is_export(document: Mapping[str, Any]) -> bool:
    """Whether `document` looks like an export of Typebot."""
    return isinstance(document.get("groups"), list) and isinstance(document.get("edges"), list)


def read(document: Mapping[str, Any]) -> Imported:
    """Converts the typebot to an automation. Raises Unreadable."""
    return _Bot(document).convert()


class _Bot:
    """Reads one typebot. `parts`: where each block, item, event and edge is, in words."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._names = NameTable()
        self._reading = Reading(self._names, Variables(document))
        self._elements: list[Element] = []
        self._groups = listed(document.get("groups"), "'groups'")
        self._blocks: dict[str, list[Block]] = {}
        self.parts: dict[str, str] = {}
        self._kept: set[str] = set()
        self._targets: dict[str, str | None] = {}
        self._by_origin: dict[str, str] = {}

    def convert(self) -> Imported:
        for number, group in enumerate(self._groups, 1):
            self._list_parts(group, number)
        self._list_edges()
        first = self._start()
        for group in self._groups:
            self._group(group)
        graph = Graph(self._elements, first)
        name = text(self._document.get("name")) or "Imported typebot"
        return conversions.convert(KIND, name, graph, self._names, self._reading.ledger, self.parts, kept=self._kept)

    def _list_parts(self, group: Mapping[str, Any], number: int) -> None:
        key, where = text(group.get("id")), f"Group {quoted(text(group.get('title')) or str(number), 40)}"
        if not key or key in self._blocks:
            raise Unreadable(f"The file is damaged: {where} has no identifier of its own.")
        self._blocks[key] = listed(group.get("blocks"), f"'blocks' of {where}")
        for at, block in enumerate(self._blocks[key], 1):
            kind = text(block.get("type"))
            self._part(text(block.get("id")), f"{where}, block {at} ({kind[:40] or 'no type'})")
            for item in listed(block.get("items"), f"'items' of {where}"):
                said = text(item.get("content")) or text(item.get("title"))
                self._part(text(item.get("id")), f"{where}, block {at}, {quoted(said, 40) if said else 'a case'}")

    def _part(self, key: str, where: str) -> None:
        if not key or key in self.parts:
            raise Unreadable(f"The file is damaged: {where} has no identifier of its own.")
        self.parts[key] = where
        if len(self.parts) > MOST_PARTS:
            raise Unreadable(f"The typebot is too large: it has more than {MOST_PARTS:,} blocks and buttons.")

    def _list_edges(self) -> None:
        for number, edge in enumerate(listed(self._document.get("edges"), "'edges'"), 1):
            key, begin, end = text(edge.get("id")), mapping(edge.get("from")), mapping(edge.get("to"))
            origin = text(begin.get("itemId")) or text(begin.get("blockId")) or text(begin.get("eventId"))
            self._part(key, f"Connection {number} from {self.parts.get(origin, 'the start')}")
            self._by_origin.setdefault(origin, key)
            self._targets[key] = self._block_at(end)
            if self._targets[key] is None:
                self._reading.ledger.lose(key, self.parts[key], "It leads nowhere: there is no such block.")

    def _block_at(self, place: Mapping[str, Any]) -> str | None:
        """Returns the block `blockId`, or else the first, of `groupId`; None if there is no such block."""
        blocks = [text(each.get("id")) for each in self._blocks.get(text(place.get("groupId")), [])]
        wanted = text(place.get("blockId")) or next(iter(blocks), "")
        return wanted if wanted in blocks else None

    def _way(self, part: Mapping[str, Any]) -> Link | None:
        """Returns the connection from a block, item or event; None if no edge begins there."""
        key = text(part.get("outgoingEdgeId"))
        key = key if key in self._targets else self._by_origin.get(text(part.get("id")), "")
        return Link(self._targets[key], key, self.parts[key]) if key in self._targets else None

    def _start(self) -> str | None:
        """Returns the first block; None if there is none. Notes events other than the start as lost."""
        first: str | None = None
        for event in listed(self._document.get("events"), "'events'"):
            key, kind = text(event.get("id")), text(event.get("type"))
            where = "The start" if kind == _START else f"The event '{kind[:40]}'"
            self._part(key, where)
            link = self._way(event)
            if kind == _START:
                first = link.to if link else None
                self._kept |= {key, *([link.source] if link and link.source else [])}
            else:
                self._reading.ledger.lose(key, where, "Only the start has an equivalent. Add a trigger instead.")
        if first is None:
            blocks = (each for blocks in self._blocks.values() for each in blocks)
            first = next((text(each.get("id")) for each in blocks if each.get("type") == _START), None)
        return first

    def _group(self, group: Mapping[str, Any]) -> None:
        """Adds the elements of a group's blocks. A text right before a question becomes its text."""
        blocks = self._blocks[text(group.get("id"))]
        aimed = set(self._targets.values())
        before: Element | None = None
        for block, after in zip(blocks, [*blocks[1:], None], strict=True):
            key, link = text(block.get("id")), self._way(block)
            reading = self._reading
            reading.source, reading.where, reading.title = key, self.parts[key], text(group.get("title"))
            element = Element(key, self.parts[key], [key])
            on = link or (Link(text(after.get("id"))) if after else None)
            question: Mapping[str, Any] = {}
            if typebot_inputs.is_input(block) and before and key not in aimed and _is_said(before):
                said = before.steps.pop()
                question = {name: said[name] for name in ("text", "attachments") if name in said}
                element.sources = [*before.sources, key]
            self._add(element, block, question, on)
            if before and key not in aimed and _is_said(before) and not _is_file(before) and _is_file(element):
                # Attach the file to the text before it.
                element.steps = [{**before.steps.pop(), "attachments": element.steps[0]["attachments"]}]
                element.sources = [*before.sources, key]
            before = element if link is None else None

    def _add(self, element: Element, block: Block, question: Mapping[str, Any], on: Link | None) -> None:
        kind = text(block.get("type"))
        if typebot_inputs.is_input(block):
            items = listed(block.get("items"), "'items'")
            links = {text(each.get("id")): link for each in items if (link := self._way(each))}
            chosen = typebot_inputs.ask(element, block, question, self._reading, links | ({"": on} if on else {}))
            self._elements.append(chosen)
        elif kind in ("Condition", "AB test"):
            (self._decide if kind == "Condition" else self._split)(element, block, on)
        elif kind == "Jump" or (kind == "Typebot link" and _is_within(block)):
            self._jump(element, block)
        elif kind == _START:
            element.links = [on] if on else []
        else:
            element.steps = [{**step, SOURCE: element.key} for step in steps_of(block, self._reading)]
            element.sources = element.sources if element.steps else []
            element.links = [on] if on else []
        self._elements.append(element)

    def _decide(self, element: Element, block: Block, on: Link | None) -> None:
        element.shape = "cases"
        for item in listed(block.get("items"), "'items'"):
            key, link = text(item.get("id")), self._way(item) or Link(None)
            made = self._reading.variables.condition(item.get("content"))
            if isinstance(made, str):
                self._reading.ledger.lose(key, self.parts[key], made)
                continue
            element.sources = [*element.sources, key]
            link.condition = made
            element.links.append(link)
        element.links.append(on or Link(None))

    def _split(self, element: Element, block: Block, on: Link | None) -> None:
        items = listed(block.get("items"), "'items'")
        share = mapping(block.get("options")).get("aPercent", 50)
        if len(items) != 2 or not isinstance(share, (int, float)) or not 0 <= share <= 100:
            self._reading.lose("It has no two arms with percentages.")
            element.links = [on] if on else []
            return
        element.shape = "split"
        element.sources = [*element.sources, *(text(each.get("id")) for each in items)]
        for name, item, percent in zip("ab", items, (share, 100 - share), strict=True):
            link = self._way(item) or Link(None)
            link.name, link.percent = name, percent
            element.links.append(link)

    def _jump(self, element: Element, block: Block) -> None:
        wanted = self._block_at(mapping(block.get("options")))
        if wanted is None:
            self._reading.lose("It leads nowhere: there is no such group.")
            return
        if text(block.get("type")) != "Jump":
            self._reading.lose("The run goes on there and does not come back.")
        element.links = [Link(wanted)]


def _is_within(block: Block) -> bool:
    options = mapping(block.get("options"))
    return options.get("typebotId") == "current" and bool(options.get("groupId"))


def _is_file(element: Element) -> bool:
    return _is_said(element) and "attachments" in element.steps[-1]


def _is_said(element: Element) -> bool:
    return bool(element.steps) and element.steps[-1]["kind"] == "send_message"
