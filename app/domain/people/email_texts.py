"""The texts of e-mails to people."""

from __future__ import annotations

from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid

from app.config import settings
from app.domain.people import notifications as notices
from app.domain.people.links import Made
from app.lib import clock
from app.models.accounts import Account
from app.models.notifications import Notification
from app.models.workspaces import Workspace

# The most notifications in one e-mail. The page lists all of them.
MOST_NOTIFICATIONS = 50


def invitation(made: Made, workspace_id: str) -> EmailMessage:
    """Returns the e-mail that invites somebody to a workspace."""
    workspace_name = Workspace.get_by_id(workspace_id).name
    return _letter(
        made.account,
        f"You are invited to {workspace_name}",
        f"You are invited to the workspace {workspace_name} on Bellhop. To join it, open this address within 7 days:\n"
        f"\n{made.address}\n\n"
        "If you do not know the workspace, you need not do anything.\n",
    )


def reset(made: Made) -> EmailMessage:
    """Returns the e-mail with the link to set a new password."""
    return _letter(
        made.account,
        "Set a new password",
        "A new password was requested for this e-mail address on Bellhop. To set one, open this address within an "
        f"hour:\n\n{made.address}\n\n"
        "If it was not you, you need not do anything: your password stays as it is.\n",
    )


def notifications(account: Account, found: Sequence[Notification]) -> EmailMessage:
    """Returns the e-mail about notifications, in the order of `found`, up to MOST_NOTIFICATIONS."""
    names = {
        each.id: each.name for each in Workspace.select().where(Workspace.id.in_({each.workspace_id for each in found}))
    }
    told, more = found[:MOST_NOTIFICATIONS], len(found) > MOST_NOTIFICATIONS
    lines = [f"{names[each.workspace_id]}: {_told(each)}\n" for each in told]
    if more:
        lines.append("There is more; see the pages.\n")
    base = settings().base_url
    unsubscribe = f"{base}/unsubscribe/{notices.unsubscribe_token(account.id)}"
    lines.append(f"You get this as a member of a workspace. To unsubscribe, open\n{unsubscribe}\n")
    subject = _headline(told[0]) if len(found) == 1 else _subject(len(told), more)
    letter = _letter(account, _short(subject), "\n".join(lines))
    # RFC 8058: the recipient's e-mail program can post to this address by itself.
    letter["List-Unsubscribe"] = f"<{unsubscribe}>"
    letter["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return letter


def _told(notification: Notification) -> str:
    return f"{_headline(notification)}\n{settings().base_url}{notices.path(notification)}"


def _headline(notification: Notification) -> str:
    return notices.headline(notification.kind, notification.detail, notification.amount)


def _subject(number: int, more: bool) -> str:
    return f"{'More than ' if more else ''}{number} notifications from Bellhop"


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"


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
