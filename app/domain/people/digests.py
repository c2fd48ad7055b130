"""Digests: which notifications the next e-mail to an account contains, and when it is due."""

from __future__ import annotations

from datetime import datetime, timedelta

from app.database import rows
from app.domain.people import notification_kinds, notifications, sessions
from app.lib import ids
from app.models.notifications import Notification

# Somebody is away if no page of theirs has been in view for this long. Only then are conversations e-mailed.
AWAY_AFTER = timedelta(minutes=5)
# Older notifications are not e-mailed, so that a new owner is not sent the past.
_TOLD_FOR = timedelta(days=1)


def untold(account_id: str, now: datetime, most: int) -> list[Notification]:
    """Returns up to `most` notifications that the account has not been e-mailed yet, newest first.

    Notifications about conversations are included only if the account is away, they are unread and newer than its last
    use, and their conversation is open.
    """
    # Identifiers are made before the commit, so an older notification may still appear after a younger one.
    # Notifications of the last 30 seconds wait for the next e-mail.
    until = ids.bound("ntf", now - timedelta(seconds=30))
    seen_at = sessions.last_use(account_id)
    is_away = seen_at is None or seen_at <= now - AWAY_AFTER
    found = _find(account_id, now, seen_at, until, until if is_away else "", most)
    return list(Notification.select().where(Notification.id.in_(found)).order_by(Notification.id.desc()))


def next_at(account_id: str, now: datetime, *, is_sent: bool) -> datetime | None:
    """Returns when the account's next e-mail is due; None if there is nothing to send.

    `is_sent`: whether an e-mail was just sent.
    """
    if not _find(account_id, now, sessions.last_use(account_id), "ntf_~", "ntf_~", 1):
        return None
    return now + (notifications.EMAIL_EVERY if is_sent else AWAY_AFTER)


def _find(
    account_id: str, now: datetime, seen_at: datetime | None, until: str, news_until: str, limit: int
) -> list[str]:
    since = ids.bound("ntf", now - _TOLD_FOR)
    values = {
        "account_id": account_id,
        "since": since,
        "until": until,
        "news_since": since if seen_at is None else max(since, ids.bound("ntf", seen_at)),
        "news_until": news_until,
        "roles": list(notification_kinds.seeing_roles()),
        "defaults": list(notification_kinds.DEFAULTS),
        "limit": limit,
    }
    return [id for (id,) in rows(_UNTOLD, values)]


_UNTOLD = """
    WITH theirs AS (
        SELECT id, workspace_id, role, mailed_until, greatest(mailed_until, read_until, %(news_since)s) AS news_since,
            coalesce(notices, %(defaults)s) AS notices
        FROM members WHERE account_id = %(account_id)s
    )
    SELECT notifications.id FROM theirs JOIN notifications USING (workspace_id)
    WHERE role = 'owner' AND member_id IS NULL AND kind <> 'new_conversation'
        AND notifications.id > greatest(mailed_until, %(since)s) AND notifications.id < %(until)s
    UNION ALL
    SELECT new.id FROM theirs CROSS JOIN LATERAL (
        SELECT id FROM notifications
        WHERE notifications.workspace_id = theirs.workspace_id AND kind = 'new_conversation'
            AND notifications.id > news_since AND notifications.id < %(news_until)s
        ORDER BY id DESC LIMIT %(limit)s) AS new
    WHERE role = ANY(%(roles)s) AND 'new_conversation:email' = ANY(notices)
    UNION ALL
    SELECT notifications.id FROM theirs JOIN notifications ON member_id = theirs.id
    WHERE role = ANY(%(roles)s) AND kind || ':email' = ANY(notices)
        AND notifications.id > news_since AND notifications.id < %(news_until)s
        AND NOT EXISTS (SELECT FROM conversations WHERE conversations.id = conversation_id AND status = 'closed')
    ORDER BY id DESC LIMIT %(limit)s
"""
