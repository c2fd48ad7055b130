"""Random histories of an inbox for tests, and what a report says of one by a plain recount of everything."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from app.database import rows
from app.domain.reports import counting, reports
from app.domain.reports.periods import Period
from app.lib import ids
from tests.cast import Api

PEOPLE = ("member", "provider")
# When histories begin: a week before the night in which clocks in Berlin skip an hour.
BEGIN = datetime(2026, 3, 22, tzinfo=UTC)


@dataclass
class Said:
    """A message. `at`: when it was stored, or sent."""

    at: datetime
    written_at: datetime
    author: str
    member_id: str | None = None


@dataclass
class Talk:
    """A conversation: `transitions` are (kind, when, assignee)."""

    workspace_id: str
    channel_id: str
    labels: list[str]
    id: str = field(default_factory=lambda: ids.new("cnv"))
    transitions: list[tuple[str, datetime, str | None]] = field(default_factory=list)
    messages: list[Said] = field(default_factory=list)


@dataclass
class Cast:
    """The values of the dimensions in a workspace."""

    workspace_id: str
    channels: Sequence[str]
    members: Sequence[str]
    labels: Sequence[str] = ("refund", "b:c", "ü", "=1+1")


def drawn(random: Random, cast: Cast, since: datetime, days: int, talks: int = 30) -> list[Talk]:
    """Conversations with all kinds of things that happen to them within these days."""
    seconds = days * 86_400
    return [_talk(random, cast, since, seconds) for _ in range(talks)]


def _talk(random: Random, cast: Cast, since: datetime, seconds: int) -> Talk:
    talk = Talk(
        cast.workspace_id,
        random.choice(cast.channels),
        sorted(random.sample(cast.labels, random.randint(0, min(3, len(cast.labels))))),
    )
    moments = sorted(since + timedelta(seconds=random.uniform(0, seconds)) for _ in range(random.randint(1, 16)))
    is_open = False
    for at in moments:
        if not is_open:
            talk.transitions.append(("reopened" if talk.transitions else "began", at, None))
            is_open = True
        elif random.random() < 0.25:
            talk.transitions.append(("closed", at, random.choice([None, *cast.members])))
            is_open = False
        else:
            talk.messages.append(_said(random, cast, at))
    return talk


def _said(random: Random, cast: Cast, at: datetime) -> Said:
    author = random.choice(["contact", "contact", "member", "member", "api", "automation", "provider"])
    if author != "member":
        return Said(at, at, author)
    # Some are sent long after they were written.
    delay = random.choice([0.0, 1.0, 40_000.0])
    return Said(at, at - timedelta(seconds=delay), author, random.choice(cast.members))


def store(talks: Sequence[Talk]) -> None:
    """Inserts the history; nothing of it is counted yet."""
    for talk in talks:
        rows(
            "INSERT INTO conversations (id, workspace_id, contact_id, channel_id, labels) VALUES (%s, %s, %s, %s, %s)",
            (talk.id, talk.workspace_id, ids.new("con"), talk.channel_id, talk.labels),
        )
        rows("DELETE FROM conversation_transitions WHERE conversation_id = %s", (talk.id,))
        for kind, at, member_id in talk.transitions:
            transition = (talk.workspace_id, talk.id, talk.channel_id, member_id, talk.labels, kind, at)
            rows(
                "INSERT INTO conversation_transitions"
                " (workspace_id, conversation_id, channel_id, assignee_id, labels, kind, at)"
                " VALUES (%s, %s, %s, %s, %s, %s, %s)",
                transition,
            )
        for message in talk.messages:
            _store_message(talk, message)


def _store_message(talk: Talk, message: Said) -> None:
    is_in = message.author == "contact"
    author = {"type": message.author, "id": message.member_id or "x"}
    columns = {
        "id": ids.new("msg"),
        "workspace_id": talk.workspace_id,
        "conversation_id": talk.id,
        "contact_id": "con_x",
        "channel_id": talk.channel_id,
        "direction": "in" if is_in else "out",
        "status": "received" if is_in else "sent",
        "author": json.dumps(author),
        "created_at": message.written_at,
    }
    names, places = ", ".join(columns), ", ".join(["%s"] * len(columns))
    rows(f"INSERT INTO messages ({names}) VALUES ({places})", tuple(columns.values()))
    if not is_in and message.author != "provider":
        rows("UPDATE messages SET sent_at = %s WHERE id = %s", (message.at, columns["id"]))


Counted = dict[str, Any]


def recount(talks: Sequence[Talk], since: datetime, until: datetime, of: Callable[..., bool]) -> Counted:
    """What is counted in that time, of what `of(talk, member_id)` chooses; durations are lists of seconds."""
    counts: Counter[str] = Counter()
    durations: defaultdict[str, list[float]] = defaultdict(list)
    for talk in talks:
        for measure, at, member_id, seconds in _happened(talk):
            if since <= at < until and of(talk, member_id):
                counts[measure] += 1
                if seconds is not None:
                    durations[measure].append(seconds)
    return {**counts, "answer_time": sorted(durations["answered"]), "resolution_time": sorted(durations["closed"])}


def _happened(talk: Talk) -> Iterator[tuple[str, datetime, str | None, float | None]]:
    starts = [at for kind, at, _ in talk.transitions if kind != "closed"]
    closings = [(at, member_id) for kind, at, member_id in talk.transitions if kind == "closed"]
    for number, start in enumerate(starts):
        yield "opened", start, None, None
        if number:
            yield "reopened", start, None, None
        closed_at, assignee_id = closings[number] if number < len(closings) else (None, None)
        if closed_at is not None:
            yield "closed", closed_at, assignee_id, (closed_at - start).total_seconds()
        until = starts[number + 1] if number + 1 < len(starts) else None
        yield from _answered(talk, start, closed_at, until)
    for message in talk.messages:
        kind = "received" if message.author == "contact" else "sent" if message.author in PEOPLE else "sent_by_programs"
        yield kind, message.at, message.member_id, None


def _answered(
    talk: Talk, start: datetime, closed_at: datetime | None, until: datetime | None
) -> Iterator[tuple[str, datetime, str | None, float | None]]:
    within = [each for each in talk.messages if start <= each.at and (until is None or each.at < until)]
    received = [each.at for each in within if each.author == "contact"]
    answers = [
        each
        for each in within
        if each.author in PEOPLE
        and received
        and each.written_at >= min(received)
        and (closed_at is None or each.written_at <= closed_at)
    ]
    if answers:
        first = min(answers, key=lambda each: each.at)
        yield "answered", first.at, first.member_id, (first.written_at - min(received)).total_seconds()


def exact_quantile(durations: Sequence[float], share: float) -> float | None:
    """The smallest of the sorted durations that has this share at or below it."""
    return durations[math.ceil(share * len(durations)) - 1] if durations else None


def total(api: Api, period: Period) -> dict[str, int]:
    """What is counted of the period by now, without what there was none of."""
    counting.count_up()
    found = reports.read(api.workspace_id, period).total
    durations = {name: sum(histogram.values()) for name, histogram in found.histograms.items()}
    return {name: number for name, number in {**found.counts, **durations}.items() if number}
