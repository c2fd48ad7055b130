"""Notifications of a workspace, and e-mail to be sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from peewee import BooleanField, IntegerField, TextField

from app import sql
from app.database import rows
from app.lib import json
from app.models.base import BaseModel, OwnedModel, TimeField, json_field, page_before

NEW = "new_conversation"


class Notification(OwnedModel):
    """A notification. `member_id`: the recipient; None: all members.

    `amount`: how often its subject has occurred since the member last read notifications.
    """

    member_id = TextField(null=True)
    kind = TextField()
    once = TextField()
    detail = json_field()
    conversation_id = TextField(null=True)
    amount = IntegerField(default=1)
    is_announced = BooleanField(default=False)
    created_at = TimeField()

    @classmethod
    def newest(
        cls,
        workspace_id: str,
        member_id: str | None,
        last_id: str | None,
        limit: int,
        *,
        kinds: Collection[str],
        since: str = "",
    ) -> list[Notification]:
        """Returns the first `limit` notifications after `last_id`, newest first.

        Includes notifications for all members, but with the kind NEW only if `kinds` has it. If `member_id` is given,
        also includes this member's own notifications of `kinds`. `since`: only notifications with a higher identifier.
        """
        of_all = cls.in_workspace(workspace_id).where(cls.id > since)
        queries = [of_all.where(cls.member_id.is_null(), cls.kind != NEW)]
        if NEW in kinds:
            queries.append(of_all.where(cls.kind == NEW))
        if member_id is not None:
            queries.append(of_all.where(cls.member_id == member_id, cls.kind.in_(list(kinds))))
        found = [row for query in queries for row in page_before(query, cls, [last_id], limit)]
        return sorted(found, key=lambda row: str(row.id), reverse=True)[:limit]

    @classmethod
    def add(cls, new: Iterable[Notification]) -> None:
        """Stores the notifications in one statement. Skips members who no longer exist.

        The newest replaces all others with its `kind` and `once` in the workspace, stored ones included. Its `amount`
        counts the ones that its member has not read.
        """
        gathered: dict[tuple[str, str, str], Notification] = {}
        for row in new:
            before = gathered.get(about := (row.workspace_id, row.kind, row.once))
            row.amount = (before.amount if before else 0) + 1
            gathered[about] = row
        if gathered:
            told = json.dumps([row.__data__ for row in gathered.values()]).decode()
            rows(sql.load("add_notifications"), {"rows": told})


class Email(BaseModel):
    kind = TextField()
    subject_id = TextField(null=True)
    address = TextField(null=True)
    attempts = IntegerField(default=0)
    due_at = TimeField()
    created_at = TimeField()
