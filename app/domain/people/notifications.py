"""Notifications to all members of a workspace, or to one, on pages and by e-mail."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app import sql
from app.config import settings
from app.database import count, rows
from app.domain.people import message_access, roles
from app.lib import clock, ids, json, keys
from app.models.accounts import Account
from app.models.members import Member
from app.models.notifications import Notification

# The shortest time between two e-mails to an account. The next one covers everything since.
EMAIL_EVERY = timedelta(hours=1)
# If no e-mail was sent for EMAIL_EVERY, the next one waits this long, to gather further notifications.
EMAIL_AFTER = timedelta(minutes=1)
MOST_UNREAD = 99
# The page for each kind about a workspace. Notifications about conversations lead to the inbox.
_PAGES = {
    "endpoint_stopped": "dashboard/endpoints/{endpoint_id}",
    "channel_refused": "settings/channels/{channel_id}",
    "import_ended": "contacts/imports/{import_id}",
    "usage_high": "settings/billing",
}
_HEADLINES = {
    "mentioned": "You were mentioned in a note on a conversation.",
    "assigned": "A conversation was assigned to you.",
    "woken": "A snoozed conversation of yours is awake.",
    "new_conversation": "Somebody has written, and the conversation is unassigned.",
}
# Where a member can be notified.
WAYS = ("page", "browser", "email")


@dataclass(frozen=True, slots=True)
class NotificationKind:
    """A kind of notification. `ways`: where members get it by default."""

    name: str
    label: str
    hint: str
    ways: tuple[str, ...]


# The first message of an assigned conversation notifies as `assigned`, later ones as `contact_wrote`. A new
# conversation notifies everybody, so by default only on the page.
NOTIFICATION_KINDS = (
    NotificationKind(
        "assigned", "Assigned to me", "By somebody else, a macro, an automation or the rule of a channel.", WAYS
    ),
    NotificationKind(
        "contact_wrote", "A contact writes in a conversation of mine", "One entry for each conversation.", WAYS
    ),
    NotificationKind("mentioned", "Somebody mentions me in a note", "", WAYS),
    NotificationKind(
        "woken", "A snoozed conversation of mine wakes", "Because its time has come, or somebody woke it.", WAYS
    ),
    NotificationKind(
        "new_conversation",
        "A new conversation that is unassigned",
        "Until somebody reads it, answers it or has it assigned.",
        ("page",),
    ),
)
NAMES = tuple(kind.name for kind in NOTIFICATION_KINDS)
CHOICES = tuple(f"{kind.name}:{way}" for kind in NOTIFICATION_KINDS for way in WAYS)
DEFAULTS = tuple(f"{kind.name}:{way}" for kind in NOTIFICATION_KINDS for way in kind.ways)


def note(workspace_id: str, kind: str, once: str, detail: Mapping[str, Any]) -> bool:
    """Notifies a workspace, in the caller's transaction, once for each kind and `once`.

    `detail`: what `headline` needs, without data of contacts. Returns whether the notification is new.
    """
    made = count(
        """
        INSERT INTO notifications (id, workspace_id, kind, once, detail) VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT (workspace_id, kind, once) DO NOTHING
        """,
        (ids.new("ntf"), workspace_id, kind, once, json.dumps(detail).decode()),
    )
    return made > 0


def headline(kind: str, detail: Mapping[str, Any], amount: int = 1) -> str:
    """Returns the notification as a sentence. `amount`: how often the event has happened."""
    if kind == "endpoint_stopped":
        return f"The webhook endpoint {detail['address']} was stopped. {detail['reason']}"
    if kind == "channel_refused":
        return f"The channel {detail['name']} needs new credentials. {detail['reason']}"
    if kind == "import_ended":
        failed = f"; {detail['failed']:,} failed" if detail["failed"] else ""
        return f"An import of contacts ended: {detail['done']:,} of {detail['total']:,} lines were imported{failed}."
    if kind == "contact_wrote":
        written = "a message" if amount == 1 else f"{amount:,} messages"
        return f"A contact has written {written} in a conversation of yours."
    if kind in _HEADLINES:
        return _HEADLINES[kind]
    meter = str(detail["meter"]).replace("_", " ")
    return (
        f"The workspace has used {detail['used']:,} {meter} this month, {detail['percent']} % of the "
        f"{detail['included']:,} that its plan includes."
    )


def path(notification: Notification) -> str:
    """Returns the path of the page that the notification is about."""
    detail = notification.detail
    below = "inbox/{conversation_id}" if "conversation_id" in detail else _PAGES[notification.kind]
    return f"/workspaces/{notification.workspace_id}/{below.format(**detail)}"


def represent(notification: Notification) -> dict[str, Any]:
    """Returns the notification as live updates show it."""
    return {
        "id": notification.id,
        "kind": notification.kind,
        "text": headline(notification.kind, notification.detail, notification.amount),
        "path": path(notification),
        "conversation_id": notification.conversation_id,
        "count": notification.amount,
        "created_at": notification.created_at,
    }


@dataclass(frozen=True, slots=True)
class Bell:
    """A member's unread notifications on the page, counted up to MOST_UNREAD + 1.

    `ignored`: the kinds that the member wants neither on the page nor in the browser.
    """

    unread: int
    ignored: tuple[str, ...]


def bell(member_id: str) -> Bell:
    """Returns the member's unread number and ignored kinds, with one statement."""
    preferences = {"roles": list(seeing_roles()), "defaults": list(DEFAULTS)}
    [(number, chosen)] = rows(_UNREAD, {"member_id": member_id, "most": MOST_UNREAD + 1, **preferences})
    heard = {choice.partition(":")[0] for choice in chosen or () if not choice.endswith(":email")}
    ignored = tuple(name for name in NAMES if name not in heard)
    return Bell(min(int(number), MOST_UNREAD + 1), ignored)


def mark_read(member_id: str, until: str) -> None:
    """Marks the notification `until` and all before it as read. Never marks as unread."""
    Member.update(read_until=until).where(Member.id == member_id, Member.read_until < until).execute()


def unsubscribe_token(account_id: str) -> str:
    """Returns the account's token for unsubscribe links. It only unsubscribes, and does not expire."""
    return f"{account_id}.{_signature(settings().secret_keys[0], account_id)}"


def account_of(token: str) -> str | None:
    """Returns the id of an unsubscribe token's account; None if we did not sign the token."""
    account_id, _, signature = token.rpartition(".")
    signatures = [_signature(key, account_id) for key in settings().secret_keys]
    is_ours = any(hmac.compare_digest(each.encode(), signature.encode()) for each in signatures)
    return account_id if is_ours else None


def want_email(account_id: str, wanted: bool) -> None:
    """Sets whether the account gets notifications by e-mail."""
    Account.update(wants_email=wanted).where(Account.id == account_id).execute()


def announce(limit: int = 5_000) -> int:
    """Queues e-mail about up to `limit` new notifications; returns how many.

    Owners get the workspace's notifications. Members get personal ones and new conversations, if they have chosen them.
    Without SMTP_URL, queues nothing: notifications of that time are never e-mailed. Safe to run concurrently.
    """
    now = clock.now()
    parameters = {
        "limit": limit,
        "is_sent": settings().smtp_url is not None,
        "due_at": now + EMAIL_AFTER,
        "every": EMAIL_EVERY,
        "roles": list(seeing_roles()),
        "defaults": list(DEFAULTS),
    }
    return int(rows(sql.load("announce_notifications"), parameters)[0][0])


def chosen_by(member: Member) -> frozenset[str]:
    """Returns the member's choice, as elements of CHOICES."""
    return frozenset(DEFAULTS if member.notices is None else member.notices)


def wanted_by(member: Member, way: str) -> tuple[str, ...]:
    """Returns the kinds that the member gets by `way`; none if the role cannot see conversations."""
    if not roles.may(member.role, message_access.SEE):
        return ()
    chosen = chosen_by(member)
    return tuple(name for name in NAMES if f"{name}:{way}" in chosen)


def choose(member_id: str, chosen: Iterable[str], *, shows_texts: bool) -> None:
    """Stores the member's choice of CHOICES, and whether browser notifications show texts."""
    given = set(chosen)
    notices = [each for each in CHOICES if each in given]
    Member.update(notices=notices, shows_texts=shows_texts).where(Member.id == member_id).execute()


def seeing_roles() -> tuple[str, ...]:
    """Returns the roles that may see conversations: only their members are notified of them."""
    return tuple(role for role in roles.ROLES if roles.may(role, message_access.SEE))


def _signature(secret: bytes, account_id: str) -> str:
    key = keys.derived(secret, "unsubscribe")
    return base64.urlsafe_b64encode(hmac.digest(key, account_id.encode(), "sha256")).decode().rstrip("=")


# Each branch uses its own index. The branch of new conversations reads only if the member wants them.
_UNREAD = """
    WITH reader AS (
        SELECT id, workspace_id, read_until, role = ANY(%(roles)s) AS sees, coalesce(notices, %(defaults)s) AS notices
        FROM members WHERE id = %(member_id)s
    )
    SELECT count(*), (SELECT CASE WHEN sees THEN notices ELSE '{}' END FROM reader) FROM (
        (SELECT FROM reader JOIN notifications USING (workspace_id)
            WHERE member_id IS NULL AND kind <> 'new_conversation' AND notifications.id > read_until LIMIT %(most)s)
        UNION ALL
        (SELECT FROM reader JOIN notifications USING (workspace_id)
            WHERE kind = 'new_conversation' AND notifications.id > read_until
                AND sees AND 'new_conversation:page' = ANY(notices) LIMIT %(most)s)
        UNION ALL
        (SELECT FROM reader JOIN notifications ON member_id = reader.id
            WHERE notifications.id > read_until AND sees AND kind || ':page' = ANY(notices) LIMIT %(most)s)) AS unread
"""
