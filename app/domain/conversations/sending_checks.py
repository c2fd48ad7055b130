"""Checks whether a message may be sent, when it is queued and again when it is claimed.

For automations and broadcasts, also checks the contact's quiet hours, and how often a text was sent to the contact
in the last minutes. Callers of these checks have locked the contact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time, timedelta
from typing import Any

from app.channels.base import ChannelKind, Outcome, Verdict
from app.database import rows
from app.domain.work.units import Busy, Unit
from app.errors import Fault, Invalid
from app.lib import ids, time_zones
from app.models.contacts import Contact

EXPIRED = Verdict(Outcome.FAILED, code="expired", detail="The message expired before it could be sent.")
OPTED_OUT = Verdict(Outcome.FAILED, code="opted_out", detail="The contact has opted out of messages.")
# How long members may answer a contact who has opted out and then writes, because the contact expects an answer.
ANSWERED_WITHIN = timedelta(hours=24)
NO_ADDRESS = Verdict(Outcome.FAILED, code="no_address", detail="The contact has no address on this channel.")
_DAY = timedelta(days=1)
_QUIET_HOURS = "SELECT quiet_hours, timezone FROM workspaces WHERE id = %s"
# How long a sent text counts as recent.
RECENT = timedelta(minutes=5)
# The most identical texts that automations and broadcasts send to a contact within RECENT.
MOST_IDENTICAL = 20


def check_size(kind: ChannelKind, text: str, files: int, buttons: int = 0) -> None:
    """Raises Invalid for more characters, files or buttons than this kind of channel allows."""
    if files > kind.most_files:
        most_files = "one file" if kind.most_files == 1 else f"{kind.most_files} files"
        raise Invalid(Fault("/attachments", f"On this channel a message has at most {most_files}."))
    most_buttons = kind.most_buttons_beside_file
    if files and most_buttons is not None and buttons > most_buttons:
        raise Invalid(Fault("/buttons", f"On this channel a message with a file has at most {most_buttons} buttons."))
    most, length = kind.most_text(files, buttons), kind.length(text)
    if length > most:
        what = "the text beside a file" if files else "a message with this many buttons" if buttons else "a message"
        detail = f"On this channel {what} has at most {most:,} characters; this one has {length:,}."
        raise Invalid(Fault("/text", detail))


def check_template(kind: ChannelKind, template: Mapping[str, Any] | None) -> None:
    """Raises Invalid for a template that the channel's provider is known to refuse."""
    if template and (fault := kind.template_fault(template)) is not None:
        raise Invalid(Fault("/template", fault))


def is_answer(author: Mapping[str, str], asked_at: datetime | None, now: datetime) -> bool:
    """Whether a member answers a recent message, so that the answer may be sent despite an opt-out.

    `asked_at`: when the contact last wrote; None if unknown or if that message opted out.
    """
    return author["type"] == "member" and asked_at is not None and asked_at > now - ANSWERED_WITHIN


def refusal(
    kind: ChannelKind,
    *,
    has_template: bool,
    opted_out: bool,
    is_open: bool,
    is_expired: bool,
    is_deleted: bool = False,
) -> Verdict | None:
    """Returns why a message may not be sent; None if it may. `is_open`: the kind's window is open."""
    if is_deleted:
        return Verdict(Outcome.FAILED, code="channel_deleted", detail="The channel has been deleted.")
    if opted_out:
        return OPTED_OUT
    if is_expired:
        return EXPIRED
    if kind.window is not None and not is_open and not has_template:
        detail = "The time in which free text may be sent has passed. Send a template."
        return Verdict(Outcome.FAILED, code="window_closed", detail=detail)
    return None


def quiet_until(unit: Unit, contact: Contact) -> datetime | None:
    """Returns when the contact's current quiet hours end; None outside of quiet hours. Raises Busy.

    During quiet hours, locks the workspace until the transaction ends, so that a later change of the hours finds the
    runs that wait for their end.
    """
    own = (contact.workspace_id,)
    found = unit.noted(("quiet hours", *own), lambda: rows(_QUIET_HOURS, own))
    if _quiet_until(unit, contact, found) is None:
        return None
    locked = unit.noted(("quiet hours kept", *own), lambda: rows(f"{_QUIET_HOURS} FOR SHARE SKIP LOCKED", own))
    if not locked:
        raise Busy
    return _quiet_until(unit, contact, locked)


def quiet_hours_end(at: datetime, hours: Mapping[str, str], *timezones: str | None) -> datetime | None:
    """Returns when the quiet hours around `at` end; None if `at` is outside of them.

    `hours`, such as `{"from": "21:00", "to": "08:00"}`, follow the first time zone that exists, or UTC. Equal times
    mean no quiet hours. A skipped local time counts as in RFC 5545 (3.3.5). If a local time occurs twice, the hours
    begin at the first and end at the second.
    """
    begins, ends = time.fromisoformat(hours["from"]), time.fromisoformat(hours["to"])
    if begins == ends:
        return None
    zone = time_zones.first_known(*timezones)
    today = at.astimezone(zone).date()
    for day in (today - _DAY, today):
        first = time_zones.instant_of(day, begins, zone)
        last = max(
            time_zones.instant_of(day + _DAY * (ends < begins), ends.replace(fold=fold), zone) for fold in (0, 1)
        )
        if first <= at < last:
            return last
    return None


def prefetch_recent(unit: Unit, contact_ids: Iterable[str]) -> None:
    """Counts the texts recently sent to these contacts, in one statement."""
    since = unit.now - RECENT
    counted = rows(
        """
        SELECT contact_id, md5(text), count(*) FROM messages
        WHERE contact_id = ANY(%s) AND id > %s AND direction = 'out' AND created_at > %s AND text IS NOT NULL
            AND status <> 'scheduled'
        GROUP BY contact_id, md5(text)
        """,
        (sorted(contact_ids), ids.around("msg", since, -1), since),
    )
    unit.notes |= {("sent", contact_id): True for contact_id in contact_ids}
    unit.notes |= {("sent", contact_id, digest): number for contact_id, digest, number in counted}


def count_recent(unit: Unit, contact_id: str, text: str) -> int:
    """Returns how often the text has been sent to the contact in the last five minutes."""
    if ("sent", contact_id) not in unit.notes:
        prefetch_recent(unit, {contact_id})
    return unit.notes.get(_sent(contact_id, text), 0)  # type: ignore[no-any-return]


def add_recent(unit: Unit, contact_id: str, text: str) -> None:
    """Records that the text is sent to the contact now."""
    unit.notes[_sent(contact_id, text)] = count_recent(unit, contact_id, text) + 1


def _quiet_until(unit: Unit, contact: Contact, found: Sequence[Any]) -> datetime | None:
    [(hours, timezone)] = found
    return quiet_hours_end(unit.now, hours, contact.timezone, timezone) if hours else None


def _sent(contact_id: str, text: str) -> tuple[str, str, str]:
    return ("sent", contact_id, hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())
