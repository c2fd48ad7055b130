"""Views: which conversations a list of the inbox shows, in which order."""

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

LABELS: Mapping[str, str] = {
    "mine": "Mine",
    "unassigned": "Unassigned",
    "all": "All open",
    "waiting": "Waiting longest",
    "snoozed": "Snoozed",
    "closed": "Closed",
}
# The parameters of an address that select a list.
PARTS = ("view", *FILTERS, "q")

Find = Callable[[datetime | None, str | None, int], Sequence[Any]]
LONGEST_POSITION = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A conversation in a list. `last`: its last message, if any. `found`: the line a search found."""

    conversation: Conversation
    name: str
    channel: Channel | None
    last: Message | None
    found: Sequence[Piece] | None = None


@dataclass(frozen=True, slots=True)
class SearchPage(lists.Page):
    """A page of search results. `has_more_contacts`: more contacts match than are shown."""

    has_more_contacts: bool


@dataclass(frozen=True, slots=True)
class View:
    """The list in the address: a view in LABELS, and `chosen`: further filters, as parameters.

    With `q`, it is a search in all conversations.
    """

    name: str
    chosen: Mapping[str, str]

    def address(self, endpoint: str, **values: Any) -> str:
        """Returns the address of a page in this list. `values` with names in PARTS change the list."""
        return url_for(endpoint, **{"workspace": workspace_id(), "view": self.name, **self.chosen, **values})

    @property
    def search(self) -> str | None:
        """The searched text; None if this is no search."""
        return self.chosen.get("q")

    @property
    def filters(self) -> dict[str, str]:
        """The filters in the address that narrow the view, by their names in FILTERS."""
        return {name: self.chosen[name] for name in FILTERS if name in self.chosen}

    @property
    def choice(self) -> Choice:
        """The list as a Choice, for changes of all its conversations."""
        if self.search:
            return Choice(SEARCH)
        return Choice(self.name, self.filters, viewer().member_id)

    def number(self, counts: Mapping[str, Any]) -> int | None:
        """Counts the conversations in the list exactly; None if that would mean reading them all."""
        choice = self.choice
        if not choice.is_listed_whole:
            return None
        return choice.count(workspace_id()) if self.filters else counts[self.name]

    def page(self) -> lists.Page:
        """Returns the page of this list that begins after the position in the address, as Rows."""
        if self.search:
            return _searched(self.search)
        find, time = self._order()

        def fetch(after: str | None, limit: int) -> Sequence[Any]:
            at, last_id = read_position(after) or (None, None)
            return find(at, last_id, limit)

        found = lists.sliced(fetch, lambda row: written_position(getattr(row, time), row.id))
        return lists.Page(rows_of(found.rows), found.next_address, found.first_address)

    def _order(self) -> tuple[Find, str]:
        """Returns a function that finds conversations after a position, and the column of its time."""
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
    """Returns the views of the viewer. Support staff have no `mine`."""
    return [name for name in LABELS if name != "mine" or viewer().membership]


def asked_for() -> View:
    """Returns the view in the address; by default, all open conversations."""
    given = lists.filters(*PARTS)
    name = given.pop("view", "all")
    name = name if name in names() else "all"
    if name in AWAKE[:2]:  # these views imply the assignee
        given.pop("assignee_id", None)
    return View(name, given)


def rows_of(conversations: Sequence[Conversation], found: Mapping[str, Sequence[Piece]] | None = None) -> list[Row]:
    """Returns conversations as rows. `found`: lines that a search found, by conversation."""
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


def read_position(text: str | None) -> tuple[datetime, str] | None:
    """Reads a position as (time, identifier); None for the beginning, or if it is invalid."""
    if not text or len(text) > LONGEST_POSITION or not text.isprintable():
        return None
    time, _, row_id = text.partition("~")
    try:
        at = datetime.fromisoformat(time)
    except ValueError:
        return None
    return (at, row_id) if at.tzinfo and row_id else None


def written_position(at: datetime, row_id: str) -> str:
    """Returns a row's position as text, which `read_position` reads."""
    return f"{at.isoformat()}~{row_id}"


def _searched(text: str) -> SearchPage:
    after = request.args.get("after", "")
    last_id = after if ids.is_id(after, "msg") else None
    found = conversation_searches.find(workspace_id(), text, last_id, lists.ROWS)
    shown = rows_of([hit.conversation for hit in found.hits], {hit.conversation.id: hit.line for hit in found.hits})
    following = lists.address(after=found.last_id) if found.last_id else None
    return SearchPage(shown, following, lists.address() if last_id else None, found.has_more_contacts)


def _closed(filters: Mapping[str, Any], _: datetime | None, last_id: str | None, limit: int) -> list[Conversation]:
    return Conversation.newest(workspace_id(), {**filters, "status": "closed"}, last_id, limit)
