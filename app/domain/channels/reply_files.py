"""Files of saved replies: kept while the reply, or a message that was sent with them, exists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from app.domain.channels import media
from app.domain.work.units import Unit


def keep(unit: Unit, workspace_id: str, upload_ids: Sequence[str], reply_id: str) -> list[dict[str, Any]]:
    """Gives the files to the saved reply, which may have them already; returns its `attachments`.

    Raises Invalid if a file is missing, expired or attached already, and Busy.
    """
    attachments = []
    for index, upload_id in enumerate(upload_ids):
        found = media.seen_by(unit, workspace_id, upload_id)
        if found is None or found.saved_reply_id != reply_id:
            found = unit.put(media.free(unit, found, index).altered(saved_reply_id=reply_id, expires_at=None))
        attachments.append(media.attachment_of(found))
    return attachments


def let_go(unit: Unit, workspace_id: str, upload_ids: Iterable[str]) -> None:
    """Detaches the files from their saved reply. Raises Busy.

    Files that were never sent with a message expire at once.
    """
    for upload_id in upload_ids:
        if (found := media.seen_by(unit, workspace_id, upload_id)) is not None:
            unit.put(found.altered(saved_reply_id=None, expires_at=None if found.was_sent else unit.now))
