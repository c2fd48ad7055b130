"""Views: which conversations a list of the inbox shows, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from flask import request, url_for

from app.domain.contacts import contact_names
from app.domain.inbox import conversation_searches
from app.domain.inbox.choices import AWAKE, FILTERS, NOBODY, SEARCH, Choice
from app.domain.inbox.conversation_searches import Piece
from app.lib import ids
from app.models.channels import Channel
from app.models.conversations import Conversation, Message
from app.web import lists
from app.web.access import viewer, workspace_id
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
PARTS = ("view", *FILTERS, "q")

Find = Callable[[datetime | None, str | None, int], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation of a list. `last` is its last message, if it has one; `found`: the line that a search found."""

    conversation: Conversation
    name: str
    channel: Channel | None
    last: Message | None
    found: Sequence[Piece] | None = None


@dataclass(frozen=True, slots=True)
class SearchPage(lists.Page):
    """A page of a search. `has_more_contacts`: more contacts have the words than are shown."""

    has_more_contacts: bool


@dataclass(frozen=True, slots=True)
class View:
    """The list that the address asks for: one of LABELS, and `chosen`, the further filters, as parts of addresses.

    With `q` among them it is a search, in all conversations.
    """

    name: str
    chosen: Mapping[str, str]

    def address(self, endpoint: str, **values: Any) -> str:
        """The address of a page that keeps this list, or changes it by values with the names in PARTS."""
        return url_for(endpoint, **{"workspace": workspace_id(), "view": self.name, **self.chosen, **values})

    @property
    def search(self) -> str | None:
        """What is searched for; None: nothing is."""
        return self.chosen.get("q")

    @property
    def filters(self) -> dict[str, str]:
        """What narrows the view."""
        return {name: self.chosen[name] for name in FILTERS if name in self.chosen}

    @property
    def choice(self) -> Choice:
        """The same list, for a change of all its conversations."""
        if self.search:
            return Choice(SEARCH)
        membership = viewer().membership
        return Choice(self.name, self.filters, membership.member_id if membership else None)

    def number(self, counts: Mapping[str, Any]) -> int | None:
        """How many conversations the list has, exactly; None if that is not known without reading them all."""
        choice = self.choice
        if not choice.is_listed_whole:
            return None
        return choice.count(workspace_id()) if self.filters else counts[self.name]

    def page(self) -> lists.Page:
        """The page of the list that the address asks for, as Rows."""
        if self.search:
            return _searched(self.search)
        find, time = self._order()

        def fetch(after: str | None, limit: int) -> Sequence[Any]:
            at, last_id = positions.read(after) or (None, None)
            return find(at, last_id, limit)

        found = lists.sliced(fetch, lambda row: positions.written(getattr(row, time), row.id))
        return lists.Page(rows_of(found.rows), found.next_address, found.first_address)

    def _order(self) -> tuple[Find, str]:
        """What finds conversations after a position, and the column that is the first part of a position."""
        filters: dict[str, Any] = self.filters
        if self.name == "waiting":
            return partial(Conversation.longest_waiting, workspace_id(), filters), "waiting_since"
        if self.name == "snoozed":
            return partial(Conversation.snoozed, workspace_id(), filters), "snoozed_until"
        if self.name == "closed":
            return partial(_closed, filters), "created_at"
        if self.name == "mine":
            filters["assignee_id"] = viewer().actor_id
        elif self.name == "unassigned":
            filters["assignee_id"] = NOBODY
        return partial(Conversation.awake, workspace_id(), filters), "at"


def names() -> list[str]:
    """The views that the viewer has. Support staff have no conversations of their own."""
    return [name for name in LABELS if name != "mine" or viewer().membership]


def asked_for() -> View:
    """The view of the address; all open conversations where it names none."""
    given = lists.filters(*PARTS)
    name = given.pop("view", "all")
    name = name if name in names() else "all"
    if name in AWAKE[:2]:  # which say themselves whose conversations they have
        given.pop("assignee_id", None)
    return View(name, given)


def rows_of(conversations: Sequence[Conversation], found: Mapping[str, Sequence[Piece]] | None = None) -> list[Row]:
    """The conversations as rows of a list, in three statements. `found`: lines of a search, by conversation."""
    ids = [conversation.id for conversation in conversations]
    names = contact_names.names_of(workspace_id(), {each.contact_id for each in conversations})
    channel_ids = {each.channel_id for each in conversations}
    channels = {each.id: each for each in Channel.select().where(Channel.id.in_(channel_ids))} if channel_ids else {}
    last = Message.last_of(ids)
    named = [(each, names.get(each.contact_id, "Deleted contact")) for each in conversations]
    return [
        Row(each, name, channels.get(each.channel_id), last.get(each.id), (found or {}).get(each.id))
        for each, name in named
    ]


def _searched(text: str) -> SearchPage:
    after = request.args.get("after", "")
    last_id = after if ids.is_id(after, "msg") else None
    found = conversation_searches.find(workspace_id(), text, last_id, lists.ROWS)
    shown = rows_of([hit.conversation for hit in found.hits], {hit.conversation.id: hit.line for hit in found.hits})
    following = lists.address(after=found.last_id) if found.last_id else None
    return SearchPage(shown, following, lists.address() if last_id else None, found.has_more_contacts)


def _closed(filters: Mapping[str, Any], _: datetime | None, last_id: str | None, limit: int) -> list[Conversation]:
    return Conversation.newest(workspace_id(), {**filters, "status": "closed"}, last_id, limit)
