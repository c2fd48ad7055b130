"""E-mail to people: queued in a transaction; sent later by the schedulers, at least once."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from email.message import EmailMessage

import structlog

from app import database, metrics
from app.config import settings
from app.database import rows, transaction
from app.domain.people import accounts, digests, email_texts, links
from app.lib import clock, ids
from app.models.accounts import Account
from app.models.members import Member
from app.models.notifications import Email
from app.outbound import smtp
from app.outbound.smtp import Away, Postponed, Refused

log = structlog.get_logger(__name__)

# How many e-mails one connection sends, and how long they stay claimed. Sending stops after half of that time: the
# message in progress takes at most a few more SMTP replies.
BATCH = 20
CLAIMED = timedelta(minutes=3)
# The pause after the first failed attempt; it doubles with each further one, up to an hour.
RETRY_AFTER, RETRY_AT_MOST = timedelta(seconds=30), timedelta(hours=1)
# Anybody can request a reset for any address, so an address is sent at most this many links in this time.
MOST_RESETS, RESETS_SPAN = 3, timedelta(hours=1)
# A reset e-mail that could not be sent for this long is dropped.
LINK_EXPECTED = timedelta(days=1)


def can_be_sent() -> bool:
    """Returns whether e-mail is configured on this installation."""
    return settings().smtp_url is not None


def arrange_invitation(link_id: str) -> None:
    """Queues the invitation in the caller's transaction. Its link gets a new address when it is sent."""
    _arrange("invitation", subject_id=link_id)


def arrange_reset(address: str) -> None:
    """Queues an e-mail with a reset link to `address`.

    The account is looked up only when the e-mail is sent, so that the caller takes as long for an unknown address;
    without an account, nothing is sent. Does nothing if an e-mail to this address is queued already.
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
    """Returns the message, and the last notification in it ("" if none).

    The message is None if there is nothing left to send.
    """
    if email.kind == "invitation":
        made = links.renew(str(email.subject_id))
        return (email_texts.invitation(made, str(made.workspace_id)) if made else None), ""
    if email.kind == "reset":
        made = _reset(email)
        return (email_texts.reset(made) if made else None), ""
    account = Account.get_by_id(email.subject_id)
    most = email_texts.MOST_NOTIFICATIONS + 1
    found = digests.untold(account.id, clock.now(), most) if account.wants_email else []
    if not found:
        return None, ""
    return email_texts.notifications(account, found), max(each.id for each in found)


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
        due_at = digests.next_at(account.id, now, is_sent=bool(until)) if account and account.wants_email else None
        if due_at is not None:
            Email.update(due_at=due_at, attempts=0).where(Email.id == email.id).execute()
        else:
            Email.delete().where(Email.id == email.id).execute()


def _retry(email: Email) -> None:
    metrics.EMAILS.labels("retried").inc()
    pause = min(RETRY_AFTER * 2 ** min(email.attempts - 1, 10), RETRY_AT_MOST)
    Email.update(due_at=_now() + pause).where(Email.id == email.id).execute()


def _now() -> datetime:
    """Returns the database's time, on which all schedulers agree.

    A scheduler whose clock is ahead must not claim e-mail that another is sending.
    """
    return clock.moved(database.now())
