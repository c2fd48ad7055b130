"""Checks whether a message may be sent: when it is queued, and again when it is claimed.

The claim may come much later.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from app.channels.base import ChannelKind, Outcome, Verdict
from app.errors import Fault, Invalid

EXPIRED = Verdict(Outcome.FAILED, code="expired", detail="The message expired before it could be sent.")
OPTED_OUT = Verdict(Outcome.FAILED, code="opted_out", detail="The contact has opted out of messages.")
# How long members may answer a contact who has opted out and then writes, because the contact expects an answer.
ANSWERED_WITHIN = timedelta(hours=24)
NO_ADDRESS = Verdict(Outcome.FAILED, code="no_address", detail="The contact has no address on this channel.")


def check_size(kind: ChannelKind, text: str, files: int, buttons: int = 0) -> None:
    """Raises Invalid for more characters, files or buttons than this kind of channel allows."""
    if files > kind.most_files:
        raise Invalid(Fault("/attachments", f"On this channel a message has at most {_files(kind.most_files)}."))
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
    """Whether the message may be sent despite an opt-out: a member answers a recent message.

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
    """Returns why a message may not be sent to the contact; None if it may.

    `is_open`: the contact wrote within the kind's window.
    """
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


def _files(number: int) -> str:
    return "one file" if number == 1 else f"{number} files"
