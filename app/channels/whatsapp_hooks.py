"""Reads WhatsApp's webhooks: messages, edits, changed numbers, echoes, statuses, preferences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.channels.inbound import (
    Arrival,
    BadPayload,
    Blocked,
    Echoed,
    Edited,
    Media,
    Moved,
    Receipt,
    ReceiptStatus,
    Received,
)
from app.channels.provider_data import unix_time
from app.channels.readings import answers_in, lines_of, reading
from app.channels.whatsapp_answers import problem_of
from app.lib import json

_MEDIA = ("image", "video", "audio", "document", "sticker")
# A voice message that was played counts as read.
_STATUSES: Mapping[str, ReceiptStatus] = {
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "played": "read",
    "failed": "failed",
}
# The second name comes from API versions before 12.
_MOVES = ("user_changed_number", "customer_changed_number", "user_changed_user_id")
_UNDOCUMENTED = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


def arrivals_in(body: bytes, phone_number_id: str) -> Sequence[Arrival]:
    """Returns the arrivals for this number. Raises BadPayload with the readable arrivals.

    An app has one address for webhooks, so the webhook may also be about other numbers.
    """
    found: list[Arrival] = []
    unreadable: list[str] = []
    try:
        for entry in json.loads(body)["entry"]:
            for change in entry["changes"]:
                value = change["value"]
                if phone_number_id == value.get("metadata", {}).get("phone_number_id", phone_number_id):
                    _read_items(value, found, unreadable)
    except _UNDOCUMENTED as error:
        unreadable.append(_what_is_wrong(error))
    if unreadable:
        raise BadPayload(unreadable[0], found)
    return found


def _read_items(value: Mapping[str, Any], found: list[Arrival], unreadable: list[str]) -> None:
    for name, read in _READERS.items():
        for item in value.get(name, ()):
            if "group_id" in item or item.get("recipient_type") == "group":
                continue
            try:
                arrival = read(item, value)
            except BadPayload as error:
                unreadable.append(str(error))
            except _UNDOCUMENTED as error:
                unreadable.append(_what_is_wrong(error))
            else:
                if arrival is not None:
                    found.append(arrival)


def _what_is_wrong(error: Exception) -> str:
    return f"It is not what WhatsApp documents: {type(error).__name__}."


@dataclass(frozen=True, slots=True)
class _Person:
    """The contact that an item is about.

    `user_id`: Meta's identifier of the contact, known even if the contact hides the phone number.
    """

    phone: str | None
    user_id: str | None
    name: str | None

    @property
    def id(self) -> str:
        return self.user_id or self.peer

    @property
    def peer(self) -> str:
        found = self.phone or self.user_id
        if not found:
            raise BadPayload("It does not say whom it is about.")
        return found

    @property
    def attested_phone(self) -> str | None:
        return f"+{self.phone}" if self.phone else None


def _person(value: Mapping[str, Any], phone: object, user_id: object) -> _Person:
    contacts = value.get("contacts") or []
    named = [
        each
        for each in contacts
        if (phone and each.get("wa_id") == phone) or (user_id and each.get("user_id") == user_id)
    ]
    contact = named[0] if named else contacts[0] if len(contacts) == 1 and not (phone or user_id) else {}
    name = contact.get("profile", {}).get("name")
    return _Person(
        _text(phone or contact.get("wa_id")), _text(user_id or contact.get("user_id")), _text(name) if name else None
    )


def _message(item: Mapping[str, Any], value: Mapping[str, Any]) -> Arrival | None:
    if item.get("type") == "system":
        return _move(item)
    person = _person(value, item.get("from"), item.get("from_user_id"))
    if item.get("type") in _EDITS:
        return _edit(item, person)
    content = _content(item)
    if content is None:
        return None
    text, media, is_shown = content
    return Received(
        key=_id(item),
        sender=person.id,
        peer=person.peer,
        provider_id=_id(item),
        at=_time(item),
        text=text,
        media=media,
        name=person.name,
        phone=person.attested_phone,
        button_id=_button_id(item),
        payload=None if is_shown else item,
        data=_answers(item.get("interactive")),
        referral=_object(item.get("referral")),
    )


def _echo(item: Mapping[str, Any], value: Mapping[str, Any]) -> Arrival | None:
    person = _person(value, item.get("to"), item.get("to_user_id"))
    if item.get("type") in _EDITS:
        return _edit(item, person)
    content = _content(item)
    if content is None:
        return None
    text, media, _ = content
    return Echoed(_id(item), person.id, person.peer, _id(item), _time(item), text, media, person.attested_phone)


def _edit(item: Mapping[str, Any], person: _Person) -> Arrival:
    change = item[item["type"]]
    text, *_ = (_content(change["message"]) if item["type"] == "edit" else None) or (None,)
    return Edited(_id(item), person.id, _id(change, "original_message_id"), _time(item), text)


def _move(item: Mapping[str, Any]) -> Arrival | None:
    """Reads a contact's new phone number or identifier; None for any other system message."""
    part = item["system"]
    before = [_text(part.get("previous_user_id") or item.get("from_user_id")), _text(item.get("from"))]
    after = _Person(_text(part.get("wa_id") or part.get("new_wa_id")), _text(part.get("user_id")), None)
    formers = [each for each in before if each and each not in (after.phone, after.user_id)]
    if part.get("type") not in _MOVES or not formers or not (after.phone or after.user_id):
        return None
    return Moved(_id(item), after.id, after.peer, _time(item), formers, after.attested_phone)


def _receipt(item: Mapping[str, Any], value: Mapping[str, Any]) -> Arrival | None:
    status = _STATUSES.get(item["status"])
    if status is None:
        return None
    person = _person(value, item.get("recipient_id"), item.get("recipient_user_id"))
    problem = problem_of(next(iter(item.get("errors") or ()), None)) if status == "failed" else None
    ours = item.get("biz_opaque_callback_data")
    return Receipt(
        key=f"{_id(item)} {item['status']}",
        recipient=person.id,
        provider_id=_id(item),
        at=_time(item),
        status=status,
        message_id=_text(ours) if ours else None,
        code=None if status != "failed" else problem.code if problem else "not_delivered",
        detail=problem.detail if problem else None,
        is_opt_out=problem is not None and problem.is_opt_out,
    )


def _preference(item: Mapping[str, Any], value: Mapping[str, Any]) -> Arrival | None:
    wish = str(item.get("value")).lower()
    if wish not in ("stop", "resume"):
        return None
    person = _person(value, item.get("wa_id"), item.get("user_id"))
    at = _time(item)
    return Blocked(f"preference {person.id} {at.timestamp():.0f} {wish}", person.id, at, wish == "stop")


# The types of items that do not become messages. All other types do.
_NO_MESSAGES = ("reaction", "request_welcome")
# The types of items that change an earlier message. `revoke` removes its text.
_EDITS = ("edit", "revoke")
# The parts of a webhook, in the order in which they are read.
_READERS: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Arrival | None]] = {
    "messages": _message,
    "message_echoes": _echo,
    "statuses": _receipt,
    "user_preferences": _preference,
}


def _content(item: Mapping[str, Any]) -> tuple[str | None, Sequence[Media], bool] | None:
    """Returns text, media and whether they show the whole message; None if the item is no message."""
    if item.get("type") in _NO_MESSAGES:
        return None
    try:
        return *_text_and_media(item), _is_shown(item)
    except (BadPayload, *_UNDOCUMENTED):  # a part that differs from Meta's documents must not lose the message
        return reading(_kind(item), _part(item)), (), False


def _text_and_media(item: Mapping[str, Any]) -> tuple[str | None, Sequence[Media]]:
    kind, part = item["type"], _part(item)
    if kind in _MEDIA:
        caption = part.get("caption")
        media = Media(_id(part), part.get("mime_type"), part.get("filename"), part.get("file_size"))
        return _text(caption) if caption else None, (media,)
    text = _TEXTS[kind](part) if kind in _TEXTS else None
    return _text(text or reading(_kind(item), part)), ()


def _part(item: Mapping[str, Any]) -> Any:
    return item.get(str(item.get("type")))


def _kind(item: Mapping[str, Any]) -> str:
    """Returns the message's type, or the inner one of an interactive or unsupported message."""
    kind, part = item.get("type"), _object(_part(item)) or {}
    inner = part.get("type") if kind in ("interactive", "unsupported") else None
    return str(inner or kind or "unknown")


def _is_shown(item: Mapping[str, Any]) -> bool:
    if "referral" in item or "referred_product" in (item.get("context") or {}):
        return False
    return item["type"] in _SHOWN or _kind(item) in _CHOICES


def _choice(part: Mapping[str, Any]) -> str | None:
    chosen = part.get(part["type"], {})
    answers = {name: value for name, value in (_answers(part) or {}).items() if name != "flow_token"}
    return "\n".join(filter(None, (chosen.get("title") or chosen.get("body"), *lines_of(answers))))


def _answers(part: Any) -> dict[str, Any] | None:
    """Returns the answers of a filled-in Flow; None unless they are a JSON object."""
    reply = _object((_object(part) or {}).get("nfm_reply")) or {}
    return answers_in(reply.get("response_json"))


def _order(part: Mapping[str, Any]) -> str:
    items = (
        f"{item.get('quantity')} x {item.get('product_retailer_id')}, {item.get('item_price')} {item.get('currency')}"
        for item in part.get("product_items", ())
    )
    return "\n".join(filter(None, (part.get("text"), *items)))


def _button_id(item: Mapping[str, Any]) -> str | None:
    """Returns the id of a pressed button or list row, or a template button's payload; else None."""
    part = _object(_part(item)) or {}
    if item.get("type") == "interactive":
        chosen = _object(part.get(str(part.get("type")))) or {}
        return _text(chosen.get("id"))  # type: ignore[no-any-return]
    return _text(part.get("payload")) if item.get("type") == "button" else None


def _place(part: Mapping[str, Any]) -> str:
    point = f"{float(part['latitude'])}, {float(part['longitude'])}"
    return "\n".join(str(each) for each in (part.get("name"), part.get("address"), point) if each)


def _cards(part: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(
        " ".join([each["name"]["formatted_name"], *(phone["phone"] for phone in each.get("phones", ()))])
        for each in part
    )


# A button's `text` is its label.
_TEXTS: Mapping[str, Callable[[Any], str | None]] = {
    "text": lambda part: part["body"],
    "button": lambda part: part["text"],
    "interactive": _choice,
    "location": _place,
    "contacts": _cards,
    "order": _order,
}
_CHOICES = ("button_reply", "list_reply")
_SHOWN = (*_MEDIA, "text", "button", "location", "contacts")


def _id(part: Mapping[str, Any], name: str = "id") -> str:
    found = _text(part[name])
    if not found or len(found) > 512:
        raise BadPayload(f"The member '{name}' is no identifier.")
    return str(found)


def _object(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _text(value: object) -> Any:
    if value is not None and not isinstance(value, str):
        raise BadPayload("A member that should be text is not.")
    return value


def _time(item: Mapping[str, Any]) -> datetime:
    return unix_time(int(item["timestamp"]))
