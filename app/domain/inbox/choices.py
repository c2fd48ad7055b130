"""Choices: the view and filters that define an inbox list, and which conversations are on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from app.database import rows
from app.lib.normalization import folded
from app.models.conversations import HAS_LABEL, MOST_LOOKED_AT, Conversation

# The views of the inbox. SEARCH stands for the results of a search.
AWAKE = ("mine", "unassigned", "all")
VIEWS = (*AWAKE, "waiting", "snoozed", "closed")
SEARCH = "search"
# The filters that narrow a view.
FILTERS = ("label", "channel_id", "assignee_id")
NOBODY = "none"
# The most conversations that one change of a whole view takes.
MOST_CHOSEN = 500_000


@dataclass(frozen=True, slots=True)
class Choice:
    """The definition of a list: a view, its filters, and the member of the view `mine`."""

    view: str
    filters: Mapping[str, str] = field(default_factory=dict)
    member_id: str | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Choice:
        """Restores a choice from what `as_json` returned."""
        return cls(stored.get("view", SEARCH), stored.get("filters", {}), stored.get("member_id"))

    @property
    def as_json(self) -> dict[str, Any]:
        """The choice as JSON, from which `of` restores it."""
        return asdict(self)

    @property
    def assignee_id(self) -> str | None:
        """The assignee whose conversations are on the list: NOBODY for unassigned ones, None for any."""
        if self.view == "mine":
            return self.member_id
        return NOBODY if self.view == "unassigned" else self.filters.get("assignee_id")

    @property
    def is_listed_whole(self) -> bool:
        """Whether the whole list can be counted: an AWAKE view, or `waiting` or `snoozed` unfiltered."""
        return self.view in AWAKE or (self.view in ("waiting", "snoozed") and not self.filters)

    def has(self, conversation: Conversation) -> bool:
        """Returns whether the conversation is on the list in its current state; True for a search."""
        if self.view == SEARCH:
            return True
        label, channel_id = self.filters.get("label"), self.filters.get("channel_id")
        assignee_id = self.assignee_id
        return (
            self._has_state(conversation)
            and (label is None or folded(label) in map(folded, conversation.labels))
            and channel_id in (None, conversation.channel_id)
            and assignee_id in (None, conversation.assignee_id or NOBODY)
        )

    def count(self, workspace_id: str) -> int:
        """Returns how many conversations are on the list, up to MOST_CHOSEN.

        As on the inbox pages, a label or channel filter is applied only to the first MOST_LOOKED_AT of the view.
        """
        query, values = self._listed(workspace_id)
        return int(rows(f"SELECT count(*) FROM ({query}) AS listed", values)[0][0])

    def write_down(self, workspace_id: str, selection_id: str, part: int) -> int:
        """Stores the list's conversations as parts of a selection. Returns how many, like `count`."""
        query, values = self._listed(workspace_id)
        written = f"""
            WITH written AS (
                INSERT INTO selection_parts (workspace_id, selection_id, number, conversation_ids)
                SELECT %(workspace_id)s, %(selection_id)s, number / %(part)s, array_agg(id ORDER BY number) FROM (
                    SELECT id, row_number() OVER () - 1 AS number FROM ({query}) AS listed) AS numbered
                GROUP BY number / %(part)s RETURNING cardinality(conversation_ids) AS size
            )
            SELECT coalesce(sum(size), 0) FROM written
        """
        return int(rows(written, {**values, "selection_id": selection_id, "part": part})[0][0])

    def _has_state(self, conversation: Conversation) -> bool:
        is_open, is_snoozed = conversation.status == "open", conversation.snoozed_until is not None
        if self.view in AWAKE:
            return is_open and not is_snoozed
        waits = conversation.waiting_since is not None
        return {"waiting": is_open and waits, "snoozed": is_snoozed}.get(self.view, not is_open)

    def _listed(self, workspace_id: str) -> tuple[str, dict[str, Any]]:
        """Returns the query for the identifiers of the list's conversations, and its parameters."""
        condition, order = _LISTED[self.view if self.view in _LISTED else "awake"]
        values: dict[str, Any] = {"workspace_id": workspace_id, "assignee_id": self.assignee_id, **self.filters}
        if self.assignee_id is not None:
            condition += " AND assignee_id" + (" IS NULL" if self.assignee_id == NOBODY else " = %(assignee_id)s")
        narrowed = [
            sql
            for name, sql in (("label", HAS_LABEL.format("%(label)s")), ("channel_id", "channel_id = %(channel_id)s"))
            if name in self.filters
        ]
        looked_at = f"""
            SELECT id, labels, channel_id FROM conversations
            WHERE workspace_id = %(workspace_id)s AND {condition} ORDER BY {order} LIMIT %(most)s
        """
        values["most"] = MOST_LOOKED_AT if narrowed else MOST_CHOSEN
        return f"SELECT id FROM ({looked_at}) AS looked_at WHERE {' AND '.join(narrowed) or 'true'}", values


# The condition and order of each view: the same as on the inbox pages, so that the same indexes serve both.
_LISTED = {
    "awake": ("status = 'open' AND snoozed_until IS NULL", "coalesce(last_message_at, created_at) DESC, id DESC"),
    "waiting": ("waiting_since IS NOT NULL", "waiting_since, id"),
    "snoozed": ("snoozed_until IS NOT NULL", "snoozed_until, id"),
}
