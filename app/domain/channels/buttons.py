"""Buttons: the answers that a message offers, which its contact gives with a tap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from marshmallow import fields

from app.database import rows
from app.errors import Fault
from app.lib.schemas import ResponseBody, about

MOST = 10
MOST_LABEL = 20
# Telegram takes 64 bytes, others more.
ID = "^[!-~]([ -~]{0,62}[!-~])?$"
ID_FORM = "an identifier of 1 to 64 ASCII characters, without spaces at its ends"


class ButtonSchema(ResponseBody):
    id = fields.String(metadata=about("The `button_id` of the reply.", example="yes"))
    label = fields.String(metadata=about("What the contact sees; the text of the reply.", example="Yes, please"))


def repeated(buttons: Sequence[Mapping[str, str]]) -> Iterator[Fault]:
    """Yields a fault for each button with the identifier, or the label, of an earlier one; pointers are from them."""
    for name in ("id", "label"):
        seen = set()
        for index, button in enumerate(buttons):
            value = button[name] if name == "id" else folded(button[name])
            if value in seen:
                yield Fault(f"/{index}/{name}", f"Another button has this {name}. Give each its own.")
            seen.add(value)


def folded(text: str) -> str:
    """The text without spaces and differences of case, as labels are compared."""
    return "".join(text.casefold().split())


def label_of(channel_id: str, provider_id: str, button_id: str) -> str | None:
    """The label of a button of the message that the provider knows by that identifier; None if there is none."""
    found = rows(
        """
        SELECT button->>'label' FROM messages CROSS JOIN LATERAL json_array_elements(buttons) AS button
        WHERE channel_id = %s AND provider_id = %s AND button->>'id' = %s
        """,
        (channel_id, provider_id, button_id),
    )
    return found[0][0] if found else None
