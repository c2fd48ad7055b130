"""Counts of open conversations: all, unassigned, snoozed, waiting, by label and by assignee.

A database trigger records the changes of each transaction; the scheduler adds them up. Reading costs the same for any
number of conversations, and is exact: it includes the changes that have not been added up yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from marshmallow import fields

from app.database import rows
from app.domain.work import deltas
from app.lib.normalization import folded
from app.lib.schemas import ResponseBody, about

IS_ANY_NEW = "EXISTS (SELECT FROM conversation_deltas)"
# If a workspace has more labels, the counts show the first ones.
MOST_LABELS = 1_000
# In SQL: how many open conversations a member has. Filled in with the workspace and the member's identifier.
OPEN_OF = """(
    SELECT coalesce(sum(amount), 0)::bigint FROM (
        SELECT amount FROM conversation_counts WHERE workspace_id = {0} AND key = 'assignee:' || {1}
        UNION ALL
        SELECT amount FROM conversation_deltas WHERE workspace_id = {0} AND key = 'assignee:' || {1}) AS counted)"""


def fold(limit: int = 10_000) -> int:
    """Adds up to `limit` changes to their counts; returns how many. Safe to run concurrently."""
    return deltas.fold("conversation", "workspace_id", limit)


def of(workspace_id: str) -> dict[str, Any]:
    """Returns the counts as in the API, from one snapshot. Has the first MOST_LABELS labels by name."""
    found = _amounts(workspace_id)
    plain = {key: found.get(key, 0) for key in ("open", "unassigned", "snoozed", "waiting")}
    return {**plain, "labels": _by_label(found), "assignees": _by(found, "assignee")}


def of_views(workspace_id: str, member_id: str | None) -> dict[str, Any]:
    """Returns the counts of the inbox's views; `mine` only with a `member_id`, `labels` as in `of`.

    `unassigned`, `all` and `mine` exclude snoozed conversations.
    """
    found = _amounts(workspace_id)
    views = {
        "unassigned": found.get("unassigned", 0) - found.get("asleep", 0),
        "all": found.get("open", 0) - found.get("snoozed", 0),
        **{key: found.get(key, 0) for key in ("waiting", "snoozed")},
        "labels": _by_label(found),
    }
    if member_id is not None:
        views["mine"] = found.get(f"assignee:{member_id}", 0) - found.get(f"asleep:{member_id}", 0)
    return views


def of_members(workspace_id: str, member_ids: Iterable[str]) -> dict[str, int]:
    """Returns how many open conversations each member has, from one snapshot."""
    query = f"SELECT member.id, {OPEN_OF} FROM unnest(%s::text[]) AS member(id)"
    return dict(rows(query.format("%s", "member.id"), (workspace_id, workspace_id, list(member_ids))))


class ConversationCountsSchema(ResponseBody):
    open = fields.Integer(metadata=about("Open conversations, snoozed ones too.", example=12))
    unassigned = fields.Integer(metadata=about("Of these, those without an assignee.", example=3))
    snoozed = fields.Integer(metadata=about("Those that are snoozed.", example=1))
    waiting = fields.Integer(metadata=about("Those whose contact waits for an answer.", example=4))
    labels = fields.Dict(
        values=fields.Integer(), metadata=about(f"By label; {MOST_LABELS:,} at most.", example={"refund": 2})
    )
    assignees = fields.Dict(values=fields.Integer(), metadata=about("By member.", example={}))


def _amounts(workspace_id: str) -> dict[str, int]:
    values = {"workspace_id": workspace_id, "most": MOST_LABELS}
    return {key: amount for key, amount in rows(_READ, values) if amount}


def _by(found: dict[str, int], kind: str) -> dict[str, int]:
    return {key.removeprefix(f"{kind}:"): amount for key, amount in found.items() if key.startswith(f"{kind}:")}


def _by_label(found: dict[str, int]) -> dict[str, int]:
    """Adds up the spellings of each label, under the one that is first by name."""
    spelled: dict[str, str] = {}
    amounts: dict[str, int] = {}
    for label, amount in sorted(_by(found, "label").items()):
        name = spelled.setdefault(folded(label), label)
        amounts[name] = amounts.get(name, 0) + amount
    return amounts


# Label keys lie between 'label:' and 'label;'. Only changes to labels up to the last one read are added.
_READ = """
    WITH labels AS MATERIALIZED (
        SELECT key, amount FROM conversation_counts
        WHERE workspace_id = %(workspace_id)s AND key >= 'label:' AND key < 'label;' ORDER BY key LIMIT %(most)s
    ), last AS (
        SELECT CASE WHEN count(*) = %(most)s THEN max(key) ELSE 'label;' END AS key FROM labels
    )
    SELECT key, sum(amount)::bigint FROM (
        SELECT key, amount FROM labels
        UNION ALL
        SELECT key, amount FROM conversation_counts
        WHERE workspace_id = %(workspace_id)s AND (key < 'label:' OR key >= 'label;')
        UNION ALL
        SELECT key, amount FROM conversation_deltas
        WHERE workspace_id = %(workspace_id)s
            AND (key < 'label:' OR key >= 'label;' OR key <= (SELECT last.key FROM last))) AS counted
    GROUP BY key ORDER BY key
"""
