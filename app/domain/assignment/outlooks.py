"""Outlooks: which member gets the next conversation of a channel, or why nobody does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.database import rows
from app.domain.assignment import assignments
from app.domain.conversations import conversation_counts
from app.domain.people.members import MOST_MEMBERS
from app.models.channels import Channel
from app.models.members import Member

# Counting stops here: a longer queue is "more than this".
MOST_QUEUED = 1_000


@dataclass(frozen=True, slots=True)
class Outlook:
    """The next member and the `load` of open conversations, or the `reason` why there is none.

    `gone`: all chosen members have left the workspace. `queued`: how many conversations wait, counted up to MOST_QUEUED
    + 1.
    """

    reason: Literal["gone", "away", "full"] | None
    member_id: str | None
    load: int
    queued: int


def of(channel: Channel) -> Outlook | None:
    """Returns the current outlook; None for a channel without the rule."""
    if channel.settings.get("assignment") != "balanced":
        return None
    [(queued,)] = rows(_QUEUED, (channel.id, MOST_QUEUED + 1))
    members = list(Member.in_workspace(channel.workspace_id).order_by(Member.id).limit(MOST_MEMBERS))
    chosen = [member for member in members if assignments.is_chosen(channel.settings, member.id)]
    available = [member for member in chosen if member.availability == "available"]
    loads = conversation_counts.of_members(channel.workspace_id, [member.id for member in available])
    if (following := assignments.choose(channel.settings, available, loads)) is not None:
        return Outlook(None, following.id, loads[following.id], queued)
    return Outlook("full" if available else "away" if chosen else "gone", None, 0, queued)


_QUEUED = f"""
    SELECT count(*) FROM (
        SELECT FROM conversations WHERE channel_id = %s AND {assignments.IS_QUEUED} LIMIT %s) AS queued
"""
