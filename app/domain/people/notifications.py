"""Notifications to the members of a workspace, or to one of them, on the pages and by e-mail."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from app import sql
from app.config import settings
from app.database import count, rows
from app.domain.work.units import Unit
from app.lib import clock, ids, json, keys
from app.models.accounts import Account
from app.models.members import Member
from app.models.notes import Note
from app.models.notifications import Notification

# An account gets at most one e-mail in that time, with all that has happened meanwhile.
EMAIL_EVERY = timedelta(hours=1)
# After an hour without notifications, the first one waits this long for others.
EMAIL_AFTER = timedelta(minutes=1)
MOST_UNREAD = 99


def note(workspace_id: str, kind: str, once: str, detail: Mapping[str, Any]) -> bool:
    """Notifies a workspace, in the caller's transaction. Of one kind, `once` is noted once; returns whether it was.

    `detail` is what `headline` needs, and must not contain data of contacts.
    """
    made = count(
        """
        INSERT INTO notifications (id, workspace_id, kind, once, detail) VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT (workspace_id, kind, once) DO NOTHING
        """,
        (ids.new("ntf"), workspace_id, kind, once, json.dumps(detail).decode()),
    )
    return made > 0


def mention(unit: Unit, note: Note, member_id: str) -> None:
    """Notifies one member that the note mentions them, when the unit writes the note."""
    unit.append(
        Notification(
            id=ids.new("ntf"),
            workspace_id=note.workspace_id,
            member_id=member_id,
            kind="mentioned",
            once=f"{note.id} {member_id}",
            detail={"note_id": note.id, "conversation_id": note.conversation_id},
            created_at=unit.now,
        )
    )


def headline(kind: str, detail: Mapping[str, Any]) -> str:
    """The notification in a sentence."""
    if kind == "endpoint_stopped":
        return f"The webhook endpoint {detail['address']} was stopped. {detail['reason']}"
    if kind == "channel_refused":
        return f"The channel {detail['name']} needs new credentials. {detail['reason']}"
    if kind == "import_ended":
        failed = f"; {detail['failed']:,} failed" if detail["failed"] else ""
        return f"An import of contacts ended: {detail['done']:,} of {detail['total']:,} lines were imported{failed}."
    if kind == "mentioned":
        return "You were mentioned in a note on a conversation."
    meter = str(detail["meter"]).replace("_", " ")
    return (
        f"The workspace has used {detail['used']:,} {meter} this month, {detail['percent']} % of the "
        f"{detail['included']:,} that its plan includes."
    )


def path(notification: Notification) -> str:
    """The page about what happened."""
    detail = notification.detail
    below = {
        "endpoint_stopped": "dashboard/endpoints/{endpoint_id}",
        "channel_refused": "settings/channels/{channel_id}",
        "import_ended": "contacts/imports/{import_id}",
        "usage_high": "settings/billing",
        # Finds the contact that has the conversation now: contacts are merged.
        "mentioned": "dashboard/search?q={conversation_id}",
    }[notification.kind]
    return f"/workspaces/{notification.workspace_id}/{below.format(**detail)}"


def represent(notification: Notification) -> dict[str, Any]:
    """The notification as live updates show it."""
    return {
        "id": notification.id,
        "kind": notification.kind,
        "text": headline(notification.kind, notification.detail),
        "path": path(notification),
        "created_at": notification.created_at,
    }


def unread(member_id: str) -> int:
    """How many notifications the member has not read, at most MOST_UNREAD + 1."""
    [(number,)] = rows(_UNREAD, {"member_id": member_id, "most": MOST_UNREAD + 1})
    return min(int(number), MOST_UNREAD + 1)


def mark_read(member_id: str, until: str) -> None:
    """Marks the notification `until` and all before it read. Safe to repeat; what was read stays read."""
    Member.update(read_until=until).where(Member.id == member_id, Member.read_until < until).execute()


def unsubscribe_token(account_id: str) -> str:
    """The account's token in links to unsubscribe. It is good for nothing else, and does not expire."""
    return f"{account_id}.{_signature(settings().secret_keys[0], account_id)}"


def account_of(token: str) -> str | None:
    """The account that the token stands for; None if it is not one of ours."""
    account_id, _, signature = token.rpartition(".")
    signatures = [_signature(key, account_id) for key in settings().secret_keys]
    is_ours = any(hmac.compare_digest(each.encode(), signature.encode()) for each in signatures)
    return account_id if is_ours else None


def want_email(account_id: str, wanted: bool) -> None:
    """Whether the account gets notifications by e-mail from now on."""
    Account.update(wants_email=wanted).where(Account.id == account_id).execute()


def announce(limit: int = 5_000) -> int:
    """Arranges e-mail about up to `limit` new notifications; returns how many. Safe to run concurrently.

    Owners get those for all members, and a member their own.
    Without SMTP_URL it arranges none, and setting it later sends nothing about earlier notifications.
    """
    now = clock.now()
    parameters = {
        "limit": limit,
        "is_sent": settings().smtp_url is not None,
        "due_at": now + EMAIL_AFTER,
        "every": EMAIL_EVERY,
    }
    return int(rows(sql.load("announce_notifications"), parameters)[0][0])


def forget_old(limit: int = 1_000) -> int:
    """Deletes up to `limit` notifications past the history retention; returns how many."""
    last = ids.bound("ntf", clock.now() - timedelta(days=settings().history_retention_days))
    oldest = Notification.select(Notification.id).where(Notification.id < last).order_by(Notification.id).limit(limit)
    return int(Notification.delete().where(Notification.id.in_(oldest)).execute())


_UNREAD = """
    SELECT count(*) FROM (
        (SELECT FROM members JOIN notifications USING (workspace_id)
            WHERE members.id = %(member_id)s AND member_id IS NULL AND notifications.id > read_until LIMIT %(most)s)
        UNION ALL
        (SELECT FROM members JOIN notifications ON member_id = members.id
            WHERE members.id = %(member_id)s AND notifications.id > read_until LIMIT %(most)s)) AS unread
"""


def _signature(secret: bytes, account_id: str) -> str:
    key = keys.derived(secret, "unsubscribe")
    return base64.urlsafe_b64encode(hmac.digest(key, account_id.encode(), "sha256")).decode().rstrip("=")
