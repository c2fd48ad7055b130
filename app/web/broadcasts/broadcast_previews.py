"""Previews: who would get a broadcast now, who is left out, and what the message looks like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app import bounds
from app.domain.automations import definitions
from app.domain.broadcasts import broadcast_choices, broadcasts, contact_actions, routes
from app.domain.broadcasts.routes import ChannelPreview
from app.domain.people import workspaces
from app.domain.segments import scans
from app.errors import Overloaded
from app.lib import clock, templates
from app.lib.templates import TemplateError
from app.models.contacts import Contact
from app.web.access import workspace_id

# The most placeholders for which the preview counts the contacts without a value. Each count scans contacts.
MOST_NAMES = 3
# Matches a placeholder with a default, such as `{{ contact.first_name | default: "there" }}`.
_WITH_DEFAULT = re.compile(r"\{\{[^{}|]*\|\s*default\s*:[^{}]*\}\}")


_NOBODY = broadcast_choices.Preview(0, True, {}, 0, ())


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text and template for one contact. With a `fault`, the contact would be skipped."""

    text: str | None = None
    template: Any = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a broadcast would do, to the contacts `found`.

    `lacking`: how many contacts have no value, by placeholder. `refusal`: why there is no preview. `is_due`: the
    broadcast would start at once, without a time or with a past one.
    """

    found: broadcast_choices.Preview = _NOBODY
    is_due: bool = False
    shown: Contact | None = None
    rendered: Rendered = Rendered()
    renditions: list[ChannelPreview] = field(default_factory=list)
    lacking: Mapping[str, int] = field(default_factory=dict)
    refusal: str | None = None

    @property
    def is_sample_of_left_out(self) -> bool:
        """Whether `left_out` covers only a part of the contacts, because there was no time for all."""
        return self.found.looked_at < self.found.count + sum(self.found.left_out.values())


def of(body: Mapping[str, Any], chosen: str) -> Preview:
    """Previews the broadcast, with the message for the chosen contact, or else for the newest.

    `body`: a valid API body. Raises Invalid if its segment has been deleted meanwhile.
    """
    condition = broadcasts.filter_of(workspace_id(), body)
    try:
        with bounds.reading_segment(workspace_id()):
            found = broadcast_choices.preview(workspace_id(), condition, body)
            lacking = _lacking(condition, body)
    except Overloaded as error:
        return Preview(refusal=error.detail)
    shown = next((each for each in found.sample if each.id == chosen), next(iter(found.sample), None))
    rendered = _rendered(body, shown)
    return Preview(
        found,
        is_due=_is_due(body),
        shown=shown,
        rendered=rendered,
        renditions=_renditions(body, shown, rendered),
        lacking=lacking,
    )


def _is_due(body: Mapping[str, Any]) -> bool:
    own_zone = workspaces.find(workspace_id()).timezone
    starts_at = broadcast_choices.starts_at(body.get("send_at"), body.get("time_zone", "workspace"), own_zone)
    return starts_at is None or starts_at <= clock.now()


def _rendered(body: Mapping[str, Any], contact: Contact | None) -> Rendered:
    if contact is None or "message" not in body:
        return Rendered()
    message = body["message"]
    try:
        text, template = contact_actions.render(message, contact, workspaces.find(workspace_id()).timezone)
    except TemplateError as error:
        return Rendered(fault=str(error))
    is_empty = not (text or "").strip() and template is None and not message.get("attachments")
    return Rendered(text, template, "Nothing is left of the text for this contact." if is_empty else None)


def _renditions(body: Mapping[str, Any], contact: Contact | None, rendered: Rendered) -> list[ChannelPreview]:
    if contact is None or "message" not in body or rendered.fault:
        return []
    return routes.renditions(body["message"], rendered.text, contact, body.get("channel_id"))


def _lacking(condition: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, int]:
    """Counts, for each of the text's placeholders, the matching contacts that have no value for it.

    Leaves out placeholders with a default or no such contact, and those after the first MOST_NAMES.
    """
    text = _WITH_DEFAULT.sub("", (body.get("message") or {}).get("text") or "")
    named = [".".join(path) for path in templates.named(text) if path[0] == "contact" and len(path) > 1]
    counted = {}
    for name in list(dict.fromkeys(named))[:MOST_NAMES]:
        lacks = {"all": [condition, {"field": name, "is": "not_exists"}]}
        if not definitions.filter_faults(lacks):  # some names in templates are not allowed in filters
            counted[name] = scans.count(workspace_id(), lacks).count
    return {name: number for name, number in counted.items() if number}
