"""Views: which conversations a list of the inbox shows, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from flask import url_for

from app.models.channels import Channel
from app.models.conversations import Conversation, Message
from app.web import lists
from app.web.access import viewer, workspace_id
from app.web.contacts import contact_names
from app.web.inbox import positions

LABELS: Mapping[str, str] = {
    "mine": "Mine",
    "unassigned": "Unassigned",
    "all": "All open",
    "waiting": "Waiting longest",
    "snoozed": "Snoozed",
    "closed": "Closed",
}
# The parts of an address that choose a list.
PARTS = ("view", "label", "channel_id")

Find = Callable[[datetime | None, str | None, int], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation of a list. `last` is its last message, if it has one."""

    conversation: Conversation
    name: str
    channel: Channel | None
    last: Message | None


@dataclass(frozen=True, slots=True)
class View:
    """The list that the address asks for: one of LABELS, and `chosen`, the further filters, as parts of addresses."""

    name: str
    chosen: Mapping[str, str]

    def address(self, endpoint: str, **values: Any) -> str:
        """The address of a page that keeps this list, or changes it by values with the names in PARTS."""
        return url_for(endpoint, **{"workspace": workspace_id(), "view": self.name, **self.chosen, **values})

    def page(self) -> lists.Page:
        """The page of the list that the address asks for, as Rows."""
        find, time = self._order()

        def fetch(after: str | None, limit: int) -> Sequence[Any]:
            at, last_id = positions.read(after) or (None, None)
            return find(at, last_id, limit)

        found = lists.sliced(fetch, lambda row: positions.written(getattr(row, time), row.id))
        return lists.Page(rows_of(found.rows), found.next_address, found.first_address)

    def _order(self) -> tuple[Find, str]:
        """What finds conversations after a position, and the column that is the first part of a position."""
        filters: dict[str, Any] = dict(self.chosen)
        if self.name == "waiting":
            return partial(Conversation.longest_waiting, workspace_id(), filters), "waiting_since"
        if self.name == "snoozed":
            return partial(Conversation.snoozed, workspace_id()), "snoozed_until"
        if self.name == "closed":
            return partial(_closed, filters), "created_at"
        if self.name == "mine":
            filters["assignee_id"] = viewer().actor_id
        elif self.name == "unassigned":
            filters["assignee_id"] = "none"
        return partial(Conversation.awake, workspace_id(), filters), "at"


def names() -> list[str]:
    """The views that the viewer has. Support staff have no conversations of their own."""
    return [name for name in LABELS if name != "mine" or viewer().membership]


def asked_for() -> View:
    """The view of the address; all open conversations where it names none."""
    given = lists.filters(*PARTS)
    name = given.pop("view", "all")
    return View(name if name in names() else "all", given)


def rows_of(conversations: Sequence[Conversation]) -> list[Row]:
    """The conversations as rows of a list, in three statements."""
    ids = [conversation.id for conversation in conversations]
    names = contact_names.names_of(workspace_id(), {each.contact_id for each in conversations})
    channel_ids = {each.channel_id for each in conversations}
    channels = {each.id: each for each in Channel.select().where(Channel.id.in_(channel_ids))} if channel_ids else {}
    last = Message.last_of(ids)
    return [
        Row(each, names.get(each.contact_id, "Deleted contact"), channels.get(each.channel_id), last.get(each.id))
        for each in conversations
    ]


def _closed(filters: Mapping[str, Any], _: datetime | None, last_id: str | None, limit: int) -> list[Conversation]:
    return Conversation.newest(workspace_id(), {**filters, "status": "closed"}, last_id, limit)
