"""Buttons: the replies that a message offers, each given with one tap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from marshmallow import fields

from app.database import rows
from app.errors import Fault
from app.lib.schemas import ResponseBody, about

MOST = 10
MOST_LABEL = 20
# Telegram limits ids to 64 bytes; other providers allow more.
ID = "^[!-~]([ -~]{0,62}[!-~])?$"
ID_FORM = "an identifier of 1 to 64 ASCII characters, without spaces at its ends"
# The latest messages among which our last one is looked for.
_MOST_LOOKED_AT = 20


class ButtonSchema(ResponseBody):
    id = fields.String(metadata=about("The `button_id` of the reply.", example="yes"))
    label = fields.String(metadata=about("What the contact sees; the text of the reply.", example="Yes, please"))


def repeated(buttons: Sequence[Mapping[str, str]]) -> Iterator[Fault]:
    """Yields a fault for each button with an earlier one's id or label. Pointers begin at the list."""
    for name in ("id", "label"):
        seen = set()
        for index, button in enumerate(buttons):
            value = button[name] if name == "id" else folded(button[name])
            if value in seen:
                yield Fault(f"/{index}/{name}", f"Another button has this {name}. Give each its own.")
            seen.add(value)


def folded(text: str) -> str:
    """Returns the text without spaces, in one case: the form in which labels are compared."""
    return "".join(text.casefold().split())


def label_of(channel_id: str, provider_id: str, button_id: str) -> str | None:
    """Returns the label of a button of the message with that `provider_id`; None if there is none."""
    found = rows(
        """
        SELECT button->>'label' FROM messages CROSS JOIN LATERAL json_array_elements(buttons) AS button
        WHERE channel_id = %s AND provider_id = %s AND button->>'id' = %s
        """,
        (channel_id, provider_id, button_id),
    )
    return found[0][0] if found else None


def is_offered(conversation_id: str, text: str) -> bool:
    """Whether our last message, if among the latest _MOST_LOOKED_AT, has a button with this label."""
    found = rows(
        """
        SELECT button->>'label' FROM (
            SELECT direction, buttons, at, id FROM (
                SELECT direction, buttons, coalesce(provider_time, created_at) AS at, id FROM messages
                WHERE conversation_id = %s AND send_at IS NULL
                ORDER BY coalesce(provider_time, created_at) DESC, id DESC LIMIT %s) AS latest
            WHERE direction = 'out' ORDER BY at DESC, id DESC LIMIT 1) AS ours
        CROSS JOIN LATERAL json_array_elements(buttons) AS button
        """,
        (conversation_id, _MOST_LOOKED_AT),
    )
    return folded(text) in {folded(label) for (label,) in found}
