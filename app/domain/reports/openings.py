"""Openings: turns messages, openings and closings of conversations into figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from app.domain.reports.histograms import bucket_of

# The measures: counts, and durations, of which histograms are kept.
COUNTS = ("received", "sent", "sent_by_programs", "opened", "reopened", "answered", "closed")
DURATIONS = ("answer_time", "resolution_time")
DIMENSIONS = ("channel", "member", "label")
# The counts that exist for a dimension. Dimensions that are not listed have all.
COUNTS_OF = {
    "member": ("sent", "answered", "closed"),
    "label": ("received", "sent", "sent_by_programs", "answered", "closed"),
}
# The author types that count as people. `provider`: somebody wrote in the provider's own app.
_PEOPLE = ("member", "provider")
# The order in which events at the same time are counted.
_ORDER = {kind: place for place, kind in enumerate(("began", "reopened", "received", "sent", "closed", "erased"))}


class ConversationEvent(NamedTuple):
    """Something that happened to a conversation. `kind`: one of _ORDER. `at`: when it was recorded.

    `member_id`: the author of a message, or the assignee at a closing. `written_at`, `author`: only of messages.
    """

    at: datetime
    kind: str
    workspace_id: str
    conversation_id: str
    channel_id: str
    labels: Sequence[str]
    member_id: str | None
    written_at: datetime | None = None
    author: str | None = None


class Figure(NamedTuple):
    """The key of an amount. `hour`: the start of the hour. `value`: '' for the whole workspace."""

    workspace_id: str
    dimension: str
    value: str
    hour: datetime
    measure: str
    bucket: int = 0


@dataclass(frozen=True, slots=True)
class Opening:
    """A conversation since its latest opening. `is_answered`: by a person, after the contact wrote."""

    opened_at: datetime
    first_received_at: datetime | None = None
    is_answered: bool = False
    closed_at: datetime | None = None


Openings = MutableMapping[str, Opening | None]


def count(events: Iterable[ConversationEvent], openings: Openings) -> Counter[Figure]:
    """Returns the figures of the events, and updates the openings of their conversations.

    An opening is None if it is unknown, for example because the conversation was opened before figures were counted.
    Later events may be left to a later call: the figures are the same.
    """
    figures: Counter[Figure] = Counter()
    for each in sorted(events, key=lambda event: (event.at, _ORDER[event.kind])):
        opening = openings.get(each.conversation_id)
        openings[each.conversation_id] = _changed(opening, each)
        for measure, bucket in _measures(each, opening):
            figures.update(_figures(each, measure, bucket))
    return figures


def _changed(opening: Opening | None, each: ConversationEvent) -> Opening | None:
    if each.kind in ("began", "reopened"):
        return Opening(each.at)
    if opening is None or each.kind == "erased":
        return None
    if each.kind == "received" and opening.first_received_at is None:
        return replace(opening, first_received_at=each.written_at)
    if each.kind == "sent" and _is_first_answer(each, opening):
        return replace(opening, is_answered=True)
    if each.kind == "closed":
        return replace(opening, closed_at=each.at)
    return opening


def _measures(each: ConversationEvent, opening: Opening | None) -> Iterator[tuple[str, int]]:
    """Yields (measure, bucket) for each measure that `each` adds to. `opening`: the state before."""
    if each.kind == "received":
        yield "received", 0
    elif each.kind == "sent":
        yield ("sent" if each.author in _PEOPLE else "sent_by_programs"), 0
        if opening and opening.first_received_at and each.written_at and _is_first_answer(each, opening):
            yield "answered", 0
            yield "answer_time", bucket_of(each.written_at - opening.first_received_at)
    elif each.kind in ("began", "reopened"):
        yield "opened", 0
        if each.kind == "reopened":
            yield "reopened", 0
    elif each.kind == "closed":
        yield "closed", 0
        if opening:
            yield "resolution_time", bucket_of(each.at - opening.opened_at)


def _is_first_answer(each: ConversationEvent, opening: Opening) -> bool:
    """Returns whether `each` is the first answer by a person to the contact, before the closing."""
    began, written_at = opening.first_received_at, each.written_at
    if each.author not in _PEOPLE or opening.is_answered or began is None or written_at is None:
        return False
    return began <= written_at and (opening.closed_at is None or written_at <= opening.closed_at)


def _figures(each: ConversationEvent, measure: str, bucket: int) -> list[Figure]:
    hour = each.at - timedelta(minutes=each.at.minute, seconds=each.at.second, microseconds=each.at.microsecond)
    values = [("", ""), ("channel", each.channel_id)]
    if each.member_id:
        values.append(("member", each.member_id))
    if each.kind not in ("began", "reopened"):
        values += [("label", label) for label in each.labels]
    return [Figure(each.workspace_id, *value, hour, measure, bucket) for value in values]
