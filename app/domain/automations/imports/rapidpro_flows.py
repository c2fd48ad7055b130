"""Converts RapidPro exports (spec versions 13 and 14) to definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.domain.automations.imports import conversions
from app.domain.automations.imports.flow_graphs import SOURCE, Element, Graph, Link, Step
from app.domain.automations.imports.rapidpro_actions import Reading, steps_of
from app.domain.automations.imports.rapidpro_cases import condition_of
from app.domain.automations.imports.rapidpro_expressions import path_of, result_name
from app.domain.automations.imports.sources import (
    MOST_PARTS,
    Imported,
    Ledger,
    NameTable,
    Unreadable,
    listed,
    mapping,
    quoted,
    text,
    texts,
)
from app.domain.automations.steps.split import MOST_ARMS
from app.domain.automations.steps.times import LONGEST_SECONDS
from app.lib import json

KIND = "rapidpro"
_INPUT = re.compile(rb'(?<![A-Za-z0-9_."])input\b(?!["_])')


def is_export(document: Mapping[str, Any]) -> bool:
    """Whether `document` looks like an export of RapidPro."""
    return isinstance(document.get("flows"), list)


def names(document: Mapping[str, Any]) -> list[str]:
    """Returns the names of the flows in an export."""
    return [text(flow.get("name")) or f"Flow {number}" for number, flow in enumerate(_flows(document), 1)]


def read(document: Mapping[str, Any], number: int = 0) -> Imported:
    """Reads the flow with that number, counted from 0. Raises Unreadable."""
    flows = _flows(document)
    if not 0 <= number < len(flows):
        raise Unreadable("There is no such flow in the file.")
    return _Flow(document, flows[number]).convert()


def _flows(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    flows = listed(document.get("flows"), "'flows'")
    if not flows:
        raise Unreadable("There is no flow in the file.")
    return flows


class _Flow:
    """Reads one flow. `parts`: where each node, action, exit and other part is, in words."""

    def __init__(self, document: Mapping[str, Any], flow: Mapping[str, Any]) -> None:
        self._document, self._flow = document, flow
        self._table = NameTable()
        self._ledger = Ledger()
        self._elements: list[Element] = []
        self.parts: dict[str, str] = {}
        written = json.dumps(flow.get("nodes"))
        self._reading = Reading(
            self._table, self._ledger, uses_categories=b".category" in written or b"has_category" in written
        )
        # Whether `@input` is used anywhere except as the operand of a router.
        self._keeps_input = len(_INPUT.findall(written)) > written.count(b'"operand":"@input')
        self._triggers: list[Mapping[str, Any]] = []
        self._kept: list[str] = []

    def convert(self) -> Imported:
        version = text(self._flow.get("spec_version"))
        if version.partition(".")[0] not in ("13", "14"):
            said = f"version {version}" if version else "a format before 13"
            raise Unreadable(
                f"This flow is of {said[:40]}. Open and save it in a newer RapidPro, then export it again."
            )
        nodes = listed(self._flow.get("nodes"), "'nodes' of the flow")
        for number, node in enumerate(nodes, 1):
            self._node(node, number)
            if len(self.parts) > MOST_PARTS * 2:
                raise Unreadable("The flow is too large: an automation has at most 500 steps.")
        self._around()
        first = text(nodes[0].get("uuid")) if nodes else None
        graph = Graph(self._elements, first)
        name = text(self._flow.get("name")) or "Imported flow"
        return conversions.convert(
            KIND, name, graph, self._table, self._ledger, self.parts, triggers=self._triggers, kept=self._kept
        )

    def _node(self, node: Mapping[str, Any], number: int) -> None:
        key, where = text(node.get("uuid")), f"Node {number}"
        if not key or key in self.parts:
            raise Unreadable(f"The file is damaged: {where} has no identifier of its own.")
        self.parts[key] = where
        steps, sources, is_over = [], [key], False
        for at, action in enumerate(listed(node.get("actions"), f"'actions' of {where}"), 1):
            source = text(action.get("uuid")) or f"{key}/{at}"
            self._at(source, f"{where}, action {at} ({text(action.get('type'))[:40] or 'no type'})")
            self.parts[source] = self._reading.where
            if made := steps_of(action, self._reading):
                sources.append(source)
                steps += [{**step, SOURCE: source} for step in made]
            is_over = is_over or (action.get("type") == "enter_flow" and action.get("terminal") is True)
        exits = {}
        for at, each in enumerate(listed(node.get("exits"), f"'exits' of {where}"), 1):
            exit_key = text(each.get("uuid")) or f"{key}/exit/{at}"
            to = text(each.get("destination_uuid")) or None
            exits[exit_key] = Link(to, exit_key, f"{where}, exit {at}")
            if to is None:
                self._kept.append(exit_key)  # an exit that leads nowhere is no loss
            self.parts[exit_key] = f"{where}, exit {at}"
        element = Element(key, where, sources, steps)
        router = mapping(node.get("router"))
        if router and not is_over:
            self._route(element, router, exits)
        elif exits:
            element.links = list(exits.values())[:1]
        self._elements.append(element)

    def _at(self, source: str, where: str) -> None:
        self._reading.source, self._reading.where = source, where

    def _route(self, element: Element, router: Mapping[str, Any], exits: Mapping[str, Link]) -> None:
        """Adds an element for the router after `element`, which gets the wait for a reply, if any."""
        key, where = element.key, element.where
        self._at(key, f"{where}, router")
        categories = {}
        for each in listed(router.get("categories"), f"'categories' of {where}"):
            link = exits.get(text(each.get("exit_uuid")))
            categories[text(each.get("uuid"))] = (text(each.get("name")), link or Link(None, None, where))
        chosen = Element(f"{key}/router", where, [key])
        if router.get("type") == "random":
            _split(chosen, list(categories.values()), self._reading)
        elif router.get("type") == "switch":
            reply = self._wait(element, router, categories)
            self._switch(chosen, router, categories, reply)
        else:
            self._reading.lose(f"There is no router like '{text(router.get('type'))[:40]}'.")
        if element.shape == "go":
            element.links = [Link(chosen.key)]
        else:
            element.links[1].to = chosen.key
        self._elements.append(chosen)

    def _wait(
        self, element: Element, router: Mapping[str, Any], categories: Mapping[str, tuple[str, Link]]
    ) -> str | None:
        """Adds the wait for a reply; returns its step, or None if the router does not wait."""
        wait = mapping(router.get("wait"))
        if not wait:
            return None
        if wait.get("type", "msg") != "msg":
            self._reading.lose(f"There is no wait for '{text(wait.get('type'))[:40]}'.")
            return None
        if hint := text(mapping(wait.get("hint")).get("type")):
            self._reading.lose(f"That the reply has to be '{hint[:40]}' is not checked.")
        step = self._reading.step("reply", "wait_for_reply")
        timeout = mapping(wait.get("timeout"))
        seconds = timeout.get("seconds")
        if isinstance(seconds, (int, float)) and 1 <= seconds <= LONGEST_SECONDS:
            step["timeout_seconds"] = int(seconds)
        _, late = categories.get(text(timeout.get("category_uuid")), ("", Link(None)))
        element.steps.append(step)
        element.shape = "otherwise"
        element.links = [Link(late.to, late.source, late.where), Link(None)]
        return str(step["id"])

    def _switch(
        self,
        chosen: Element,
        router: Mapping[str, Any],
        categories: Mapping[str, tuple[str, Link]],
        reply: str | None,
    ) -> None:
        operand = text(router.get("operand"))
        path = path_of(operand, reply)
        if reply and self._keeps_input:
            chosen.steps.append(self._reading.set("input", f"{{{{ steps.{reply}.text }}}}"))
        result = text(router.get("result_name"))
        if result:
            value = f"steps.{reply}.text" if reply else path
            chosen.steps.append(self._reading.set(result_name(result), f"{{{{ {value} }}}}" if value else ""))
        chosen.shape = "cases"
        for number, case in enumerate(listed(router.get("cases"), f"'cases' of {chosen.where}"), 1):
            name, link = categories.get(text(case.get("category_uuid")), ("", Link(None, None, chosen.where)))
            source = text(case.get("uuid")) or f"{chosen.key}/case/{number}"
            self._at(source, f"{chosen.where}, case {number} ({name[:60] or text(case.get('type'))[:40]})")
            self.parts[source] = self._reading.where
            groups = case.get("type") == "has_group"
            made = (
                condition_of(case, path or "")
                if path or groups
                else f"The expression {quoted(operand)} has no equivalent."
            )
            if isinstance(made, str):
                self._reading.lose(made)
                continue
            chosen.sources = [*chosen.sources, source]
            chosen.links.append(replace(link, condition=made, steps=self._category(result, name)))
        name, link = categories.get(text(router.get("default_category_uuid")), ("", Link(None, None, chosen.where)))
        chosen.links.append(replace(link, steps=self._category(result, name)))

    def _category(self, result: str, name: str) -> list[Step]:
        if not result or not name or not self._reading.uses_categories:
            return []
        return [self._reading.set(f"{result_name(result)}_category", name)]

    def _around(self) -> None:
        """Converts the flow's keyword triggers. Notes other triggers, campaigns, translations as lost."""
        flow = text(self._flow.get("uuid"))
        for language in mapping(self._flow.get("localization")):
            self._ledger.lose(f"localization/{language}", "The flow", f"Its texts in '{language[:20]}' are left out.")
        for number, trigger in enumerate(listed(self._document.get("triggers"), "'triggers'"), 1):
            if text(mapping(trigger.get("flow")).get("uuid")) != flow:
                continue
            source, where = f"trigger/{number}", f"Trigger {number}"
            self.parts[source] = where
            if made := _trigger(trigger):
                self._triggers.append(made)
                self._kept.append(source)
            else:
                self._ledger.lose(source, where, "Only triggers by keywords have an equivalent.")
        for campaign in listed(self._document.get("campaigns"), "'campaigns'"):
            for number, event in enumerate(listed(campaign.get("events"), "'events' of a campaign"), 1):
                if text(mapping(event.get("flow")).get("uuid")) == flow:
                    source, where = f"campaign/{text(campaign.get('uuid'))}/{number}", text(campaign.get("name"))
                    self.parts[source] = f"Campaign {quoted(where)}"
                    why = "A campaign starts it. Add a trigger by a date of the contact."
                    self._ledger.lose(source, self.parts[source], why)


def _trigger(trigger: Mapping[str, Any]) -> Mapping[str, Any] | None:
    words = [*texts(trigger.get("keywords")), *([text(trigger["keyword"])] if trigger.get("keyword") else [])]
    if trigger.get("trigger_type") not in ("K", None) or not any(words):
        return None
    how = "equals" if trigger.get("match_type") == "O" else "starts_with"
    field = "trigger.event.data.message.text"
    said: Sequence[Mapping[str, Any]] = [{"field": field, "is": how, "value": word} for word in words if word][:10]
    return {"event": "message.received", "if": said[0] if len(said) == 1 else {"any": list(said)}}


def _split(chosen: Element, categories: Sequence[tuple[str, Link]], reading: Reading) -> None:
    if not 2 <= len(categories) <= MOST_ARMS:
        reading.lose(f"A split has 2 to {MOST_ARMS} arms; this has {len(categories)}.")
        return
    table, share = NameTable(), round(100 / len(categories), 2)
    chosen.shape = "split"
    for number, (name, link) in enumerate(categories):
        percent = share if number else round(100 - share * (len(categories) - 1), 2)
        arm = table.of(str(number), name, "arm")
        chosen.links.append(replace(link, percent=percent, name=arm))
