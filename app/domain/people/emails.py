"""E-mail to people: queued in a transaction; sent later by the schedulers, at least once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid

import structlog

from app import database, metrics
from app.config import settings
from app.database import rows, transaction
from app.domain.people import accounts, links, notifications, sessions
from app.lib import clock, ids
from app.models.accounts import Account
from app.models.members import Member
from app.models.notifications import Email, Notification
from app.models.workspaces import Workspace
from app.outbound import smtp
from app.outbound.smtp import Away, Postponed, Refused

log = structlog.get_logger(__name__)

# How many e-mails one connection sends, and how long they stay claimed. None is begun after half of that time, because
# one in progress may still wait for a few replies of the SMTP server.
BATCH = 20
CLAIMED = timedelta(minutes=3)
# The pause after the first failed attempt; it doubles with each further one, up to an hour.
RETRY_AFTER, RETRY_AT_MOST = timedelta(seconds=30), timedelta(hours=1)
# Anybody can request a reset for any address, so an address is sent at most this many links in this time.
MOST_RESETS, RESETS_SPAN = 3, timedelta(hours=1)
# A reset e-mail that could not be sent for this long is dropped.
LINK_EXPECTED = timedelta(days=1)
# An account is away if none of its pages was in view for this long. Only then does it get e-mail about conversations.
AWAY_AFTER = timedelta(minutes=5)
# Older notifications are not e-mailed, so that a new owner is not sent the past.
_TOLD_FOR = timedelta(days=1)
# The most notifications in one e-mail. The page lists all of them.
MOST_NOTIFICATIONS = 50


def can_be_sent() -> bool:
    """Returns whether e-mail is configured on this installation."""
    return settings().smtp_url is not None


def arrange_invitation(link_id: str) -> None:
    """Queues the invitation in the caller's transaction. Its link gets a new address when it is sent."""
    _arrange("invitation", subject_id=link_id)


def arrange_reset(address: str) -> None:
    """Queues an e-mail with a reset link to `address`, unless one is queued already.

    The account is looked up only when the e-mail is sent, so that the caller takes as long for an unknown address;
    without an account, nothing is sent.
    """
    if len(address) <= accounts.LONGEST_EMAIL and "\0" not in address:
        _arrange("reset", address=address.strip())


def send_due() -> int:
    """Sends due e-mail, up to BATCH; returns how many were sent. Safe to run concurrently.

    E-mail that the server does not accept now is tried again later.
    """
    claimed = _claim() if can_be_sent() else []
    if not claimed:
        return 0
    ends, sent = time.monotonic() + CLAIMED.total_seconds() / 2, 0
    try:
        with smtp.connected() as server:
            while claimed and time.monotonic() < ends:
                sent += _send(server, claimed[0])
                del claimed[0]
    except Away as error:
        log.warning("emails.server_away", error=str(error))
    for email in claimed:
        _retry(email)
    return sent


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
    found = _find_untold(account_id, now, seen_at, until, until if is_away else "", most)
    return list(Notification.select().where(Notification.id.in_(found)).order_by(Notification.id.desc()))


def next_at(account_id: str, now: datetime, *, is_sent: bool) -> datetime | None:
    """Returns when the account's next e-mail is due, if any. `is_sent`: an e-mail was just sent."""
    if not _find_untold(account_id, now, sessions.last_use(account_id), "ntf_~", "ntf_~", 1):
        return None
    return now + (notifications.EMAIL_EVERY if is_sent else AWAY_AFTER)


def _arrange(kind: str, subject_id: str | None = None, address: str | None = None) -> None:
    new = Email.insert(id=ids.new("eml"), kind=kind, subject_id=subject_id, address=address, due_at=_now())
    new.on_conflict_ignore().execute()


def _claim() -> list[Email]:
    now = _now()
    due = Email.select(Email.id).where(Email.due_at <= now).order_by(Email.due_at).limit(BATCH)
    free = due.for_update("FOR UPDATE SKIP LOCKED")  # type: ignore[arg-type]
    taken = Email.update(due_at=now + CLAIMED, attempts=Email.attempts + 1).where(Email.id.in_(free))
    return list(taken.returning(Email).execute())


def _send(server: smtp.Connection, email: Email) -> bool:
    """Sends one e-mail; returns whether the server accepted it. Raises Away."""
    message, until = _compose(email)
    outcome = "sent"
    try:
        if message is not None:
            server.send(message)
    except Postponed as error:
        log.info("emails.postponed", email=email.id, kind=email.kind, error=str(error))
        _retry(email)
        return False
    except Refused as error:
        log.warning("emails.refused", email=email.id, kind=email.kind, error=str(error))
        outcome = "refused"
    if message is not None:
        metrics.EMAILS.labels(outcome).inc()
    _finish(email, until)
    return message is not None and outcome == "sent"


def _compose(email: Email) -> tuple[EmailMessage | None, str]:
    """Returns the message (None: there is nothing to send), and its last notification ("": none)."""
    if email.kind == "invitation":
        made = links.renew(str(email.subject_id))
        return (_invitation(made, str(made.workspace_id)) if made else None), ""
    if email.kind == "reset":
        made = _reset(email)
        return (_reset_letter(made) if made else None), ""
    account = Account.get_by_id(email.subject_id)
    most = MOST_NOTIFICATIONS + 1
    found = untold(account.id, clock.now(), most) if account.wants_email else []
    if not found:
        return None, ""
    return _about_notifications(account, found), max(each.id for each in found)


def _reset(email: Email) -> links.Made | None:
    is_late = clock.now() - email.created_at > LINK_EXPECTED
    account = None if is_late else accounts.find(str(email.address))
    if account is None or account.disabled_at is not None:
        return None
    if email.attempts == 1 and links.resets_within(account, RESETS_SPAN) >= MOST_RESETS:
        return None
    return links.reset(account)


def _finish(email: Email, until: str) -> None:
    """Deletes an e-mail that is done, or schedules it again if more notifications are due."""
    now = _now()
    with transaction():
        rows("SELECT 1 FROM emails WHERE id = %s FOR UPDATE", (email.id,))
        if email.kind == "notifications" and until:
            Account.update(mailed_at=now).where(Account.id == email.subject_id).execute()
            theirs = Member.account_id == email.subject_id
            Member.update(mailed_until=until).where(theirs, Member.mailed_until < until).execute()
        account = Account.get_by_id(email.subject_id) if email.kind == "notifications" else None
        due_at = next_at(account.id, now, is_sent=bool(until)) if account and account.wants_email else None
        if due_at is not None:
            Email.update(due_at=due_at, attempts=0).where(Email.id == email.id).execute()
        else:
            Email.delete().where(Email.id == email.id).execute()


def _retry(email: Email) -> None:
    metrics.EMAILS.labels("retried").inc()
    pause = min(RETRY_AFTER * 2 ** min(email.attempts - 1, 10), RETRY_AT_MOST)
    Email.update(due_at=_now() + pause).where(Email.id == email.id).execute()


def _now() -> datetime:
    # The database's time: a scheduler whose clock is ahead must not claim e-mail that another is sending.
    return clock.moved(database.now())


def _find_untold(
    account_id: str, now: datetime, seen_at: datetime | None, until: str, news_until: str, limit: int
) -> list[str]:
    since = ids.bound("ntf", now - _TOLD_FOR)
    values = {
        "account_id": account_id,
        "since": since,
        "until": until,
        "news_since": since if seen_at is None else max(since, ids.bound("ntf", seen_at)),
        "news_until": news_until,
        "roles": list(notifications.seeing_roles()),
        "defaults": list(notifications.DEFAULTS),
        "limit": limit,
    }
    return [id for (id,) in rows(_UNTOLD, values)]


def _invitation(made: links.Made, workspace_id: str) -> EmailMessage:
    workspace_name = Workspace.get_by_id(workspace_id).name
    return _letter(
        made.account,
        f"You are invited to {workspace_name}",
        f"You are invited to the workspace {workspace_name} on Bellhop. To join it, open this address within 7 days:\n"
        f"\n{made.address}\n\n"
        "If you do not know the workspace, you need not do anything.\n",
    )


def _reset_letter(made: links.Made) -> EmailMessage:
    return _letter(
        made.account,
        "Set a new password",
        "A new password was requested for this e-mail address on Bellhop. To set one, open this address within an "
        f"hour:\n\n{made.address}\n\n"
        "If it was not you, you need not do anything: your password stays as it is.\n",
    )


def _about_notifications(account: Account, found: Sequence[Notification]) -> EmailMessage:
    """Returns the e-mail about notifications, in the order of `found`, up to MOST_NOTIFICATIONS."""
    workspaces = Workspace.select().where(Workspace.id.in_({each.workspace_id for each in found}))
    names = {workspace.id: workspace.name for workspace in workspaces}
    told, more = found[:MOST_NOTIFICATIONS], len(found) > MOST_NOTIFICATIONS
    base = settings().base_url
    lines = [f"{names[each.workspace_id]}: {_headline(each)}\n{base}{notifications.path(each)}\n" for each in told]
    if more:
        lines.append("There is more; see the pages.\n")
    unsubscribe = f"{base}/unsubscribe/{notifications.unsubscribe_token(account.id)}"
    lines.append(f"You get this as a member of a workspace. To unsubscribe, open\n{unsubscribe}\n")
    several = f"{'More than ' if more else ''}{len(told)} notifications from Bellhop"
    subject = _headline(told[0]) if len(found) == 1 else several
    letter = _letter(account, subject if len(subject) <= 120 else f"{subject[:119]}…", "\n".join(lines))
    # RFC 8058: the recipient's e-mail program can post to this address by itself.
    letter["List-Unsubscribe"] = f"<{unsubscribe}>"
    letter["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return letter


def _headline(notification: Notification) -> str:
    return notifications.headline(notification.kind, notification.detail, notification.amount)


def _letter(account: Account, subject: str, text: str) -> EmailMessage:
    letter = EmailMessage()
    letter["From"] = f"Bellhop <{settings().mail_from}>"
    letter["To"] = account.email
    letter["Subject"] = " ".join(subject.split())  # a header has one line
    letter["Date"] = format_datetime(clock.now())
    letter["Message-ID"] = make_msgid(domain=settings().mail_from.rpartition("@")[2])
    letter["Auto-Submitted"] = "auto-generated"  # RFC 3834: so that no auto-responder answers
    letter.set_content(text)
    return letter


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
