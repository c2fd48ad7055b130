"""Converts other products' buttons and files of messages, within our limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from app.config import settings
from app.domain.channels import buttons, media
from app.lib import graphemes
from app.lib.addresses import LONGEST_ADDRESS, check_address


def buttons_of(labels: Sequence[str], lose: Callable[[str], None]) -> list[dict[str, str]]:
    """Returns buttons with these labels. Identifiers are the untruncated labels, where possible.

    Calls `lose` with a sentence for each label that is cut or left out.
    """
    made: list[dict[str, str]] = []
    seen: set[str] = set()
    for number, label in enumerate(labels, 1):
        line = " ".join(label.split())
        short = (
            line
            if len(line) <= buttons.MOST_LABEL or "{" in line
            else f"{graphemes.cut(line, buttons.MOST_LABEL - 1).rstrip()}…"
        )
        if not line or buttons.folded(short) in seen:
            lose(f"The button “{line[:60]}” is left out: it is empty, or another one looks the same.")
            continue
        if len(made) == buttons.MOST:
            lose(f"A message has at most {buttons.MOST} buttons. “{line[:60]}” is left out.")
            continue
        if short != line:
            lose(f"The button “{line[:60]}” is cut to {buttons.MOST_LABEL} characters.")
        seen.add(buttons.folded(short))
        identifier = line if re.fullmatch(buttons.ID, line) and "{" not in line else f"option_{number}"
        made.append({"id": identifier, "label": short})
    return made


def files_of(addresses: Sequence[str], lose: Callable[[str], None]) -> list[dict[str, str]]:
    """Returns files to fetch from these addresses, which are templates.

    Calls `lose` with a sentence for each file that is left out.
    """
    made: list[dict[str, str]] = []
    for address in addresses:
        refusal = None if "{" in address else check_address(address, settings().webhook_allowed_networks)
        if not address or len(address) > LONGEST_ADDRESS or refusal:
            lose(f"The file {address[:80] or 'without an address'} cannot be sent. {refusal or ''}".strip())
        elif len(made) == media.MOST_FILES:
            lose(f"A message has at most {media.MOST_FILES} files. {address[:80]} is left out.")
        else:
            made.append({"address": address})
    return made
