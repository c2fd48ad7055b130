"""Reads Telegram's updates as arrivals (https://core.telegram.org/bots/api#update)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from app.channels.inbound import Arrival, BadPayload, Blocked, Edited, Media, Received
from app.channels.provider_data import unix_time
from app.channels.readings import answers_in, lines_of, reading
from app.lib import clock, json

# Members of a message that hold one file. An animation is repeated in `document`, so it comes first.
_FILES = ("animation", "document", "video", "audio", "voice", "video_note", "sticker")
# The types of files for which Telegram does not send a type.
_TYPES = {"photo": "image/jpeg", "video_note": "video/mp4", "voice": "audio/ogg"}
# Members of service messages, which report an event in the chat. Nobody has written these messages. See
# https://core.telegram.org/bots/api#message.
_SERVICE = frozenset(
    {
        *("new_chat_members", "left_chat_member", "new_chat_title", "new_chat_photo", "delete_chat_photo"),
        *("group_chat_created", "supergroup_chat_created", "channel_chat_created", "migrate_to_chat_id"),
        *("migrate_from_chat_id", "pinned_message", "message_auto_delete_timer_changed", "chat_background_set"),
        *("write_access_allowed", "connected_website", "proximity_alert_triggered", "boost_added"),
        *("forum_topic_created", "forum_topic_edited", "forum_topic_closed", "forum_topic_reopened"),
        *("general_forum_topic_hidden", "general_forum_topic_unhidden", "giveaway_created", "giveaway_completed"),
        *("video_chat_scheduled", "video_chat_started", "video_chat_ended", "video_chat_participants_invited"),
        *("paid_message_price_changed", "direct_message_price_changed"),
    }
)
# Members that say who sent a message, when, and how it looks; also the text and the caption, which `_text` reads.
_ENVELOPE = frozenset(
    {
        *("message_id", "message_thread_id", "from", "sender_chat", "sender_boost_count", "sender_business_bot"),
        *("date", "edit_date", "business_connection_id", "chat", "forward_origin", "forward_from", "forward_date"),
        *("forward_from_chat", "forward_from_message_id", "forward_signature", "forward_sender_name", "via_bot"),
        *("is_topic_message", "is_automatic_forward", "is_from_offline", "is_paid_post", "paid_star_count"),
        *("reply_to_message", "reply_to_story", "reply_to_checklist_task_id", "external_reply", "quote"),
        *("has_protected_content", "has_media_spoiler", "show_caption_above_media", "media_group_id"),
        *("author_signature", "text", "entities", "caption", "caption_entities", "link_preview_options"),
        *("effect_id", "reply_markup", "direct_messages_topic", "suggested_post_info"),
    }
)

Object = Mapping[str, Any]

# Prefix for identifiers of presses, which have no message identifier of their own.
_PRESS = "press:"


def read(body: bytes) -> Arrival | None:
    """Returns the arrival in an update; None if it has none, as in a group. Raises BadPayload."""
    try:
        update = json.loads(body)
    except ValueError as error:
        raise BadPayload(str(error)) from error
    if not isinstance(update, dict):
        raise BadPayload("The update is not an object.")
    key = str(_integer(update, "update_id"))
    for member, reader in _READERS.items():
        if member in update:
            found = _object(update, member)
            if member == "callback_query" and not found.keys() >= {"message", "data"}:
                return None  # the button is in a message that the bot did not send, or in a game
            place = _object(found, "message") if member == "callback_query" else found
            chat = _object(place, "chat")
            return reader(key, found, chat) if chat.get("type") == "private" else None
    return None


def _received(key: str, message: Object, chat: Object) -> Received | None:
    sender = _object(message, "from")
    if sender.get("is_bot") is True or not message.keys().isdisjoint(_SERVICE):
        return None
    text, media, kind = _content(message)
    if text is None and not media:
        text = reading(kind or "empty", message.get(kind or "text"))
    return Received(
        key=key,
        sender=str(_integer(sender, "id")),
        peer=str(_integer(chat, "id")),
        provider_id=_identifier(message, chat),
        at=_time(message, "date"),
        text=text,
        media=media,
        name=_name(sender),
        phone=_own_phone(message, sender),
        locale=_string(sender, "language_code"),
        payload=message if kind else None,
        data=_answers(message.get("web_app_data")),
        album=_string(message, "media_group_id"),
    )


def _pressed(key: str, query: Object, chat: Object) -> Received | None:
    """Reads the press of a button, as of now: Telegram sends no time for it. Raises BadPayload."""
    sender, message = _object(query, "from"), _object(query, "message")
    identifier, data = _string(query, "id"), _string(query, "data")
    if identifier is None or data is None:
        raise BadPayload("A press has no id or no data.")
    return Received(
        key=key,
        sender=str(_integer(sender, "id")),
        peer=str(_integer(chat, "id")),
        provider_id=f"{_PRESS}{identifier}",
        at=clock.now(),
        text=_label(message, data),
        name=_name(sender),
        locale=_string(sender, "language_code"),
        button_id=data,
        pressed=_identifier(message, chat),
    )


def _edited(key: str, message: Object, chat: Object) -> Edited | None:
    sender = _object(message, "from")
    if "location" in message:
        return None  # an update of a shared live location
    text, _, kind = _content(message)
    if text is None and kind:
        text = reading(kind, message.get(kind))
    return Edited(
        key=key,
        sender=str(_integer(sender, "id")),
        provider_id=_identifier(message, chat),
        at=_time(message, "edit_date" if "edit_date" in message else "date"),
        text=text,
    )


def _member(key: str, change: Object, chat: Object) -> Blocked | None:
    status = _object(change, "new_chat_member").get("status")
    if status not in ("kicked", "member"):
        return None
    sender = str(_integer(_object(change, "from"), "id"))
    return Blocked(key=key, sender=sender, at=_time(change, "date"), is_blocked=status == "kicked")


_READERS: Mapping[str, Callable[[str, Object, Object], Arrival | None]] = {
    "message": _received,
    "edited_message": _edited,
    "callback_query": _pressed,
    "my_chat_member": _member,
}


def query_of(provider_id: str) -> str | None:
    """Returns the query identifier of a press; None for a message."""
    return provider_id.removeprefix(_PRESS) if provider_id.startswith(_PRESS) else None


def _label(message: Object, data: str) -> str | None:
    """Returns the label of the button with that data; None if Telegram no longer shows the message."""
    keyboard = message.get("reply_markup")
    rows = keyboard.get("inline_keyboard") if isinstance(keyboard, dict) else None
    for row in rows if isinstance(rows, list) else ():
        for button in row if isinstance(row, list) else ():
            if isinstance(button, dict) and button.get("callback_data") == data:
                return _string(button, "text")
    return None


def _identifier(message: Object, chat: Object) -> str:
    return f"{_integer(chat, 'id')}:{_integer(message, 'message_id')}"


def _content(message: Object) -> tuple[str | None, Sequence[Media], str | None]:
    """Returns the text, the files, and the name of the member that is not shown, if any."""
    try:
        return _text(message), _media(message), _unknown_kind(message)
    except BadPayload:  # a part that differs from Telegram's documents must not lose the message
        written = _without_nul(message.get("text", message.get("caption")))
        return written, (), next((member for member in message if member not in _ENVELOPE), "entities")


def _text(message: Object) -> str | None:
    """Returns the text or caption, else a description of the content; None if there is neither."""
    for member, entities in (("text", "entities"), ("caption", "caption_entities")):
        if member in message:
            return _without_nul(_with_addresses(message.get(member), message.get(entities)))
    return next((words(_object(message, member)) for member, words in _WORDS.items() if member in message), None)


def _with_addresses(text: object, entities: object) -> object:
    if not isinstance(text, str) or not isinstance(entities, list):
        return text
    links = [each for each in entities if isinstance(each, dict) and each.get("type") == "text_link"]
    written = text.encode("utf-16-le")  # offsets count UTF-16 code units
    for link in sorted(links, key=_end, reverse=True):
        address, end = _string(link, "url"), 2 * _end(link)
        if address and address not in text:
            written = written[:end] + f" ({address})".encode("utf-16-le") + written[end:]
    return written.decode("utf-16-le", "ignore")


def _end(entity: Object) -> int:
    return _integer(entity, "offset") + _integer(entity, "length")


def _contact_words(contact: Object) -> str:
    return ", ".join(filter(None, (_name(contact), _string(contact, "phone_number"))))


def _venue_words(venue: Object) -> str:
    parts = (_string(venue, "title"), _string(venue, "address"), _location_words(_object(venue, "location")))
    return ", ".join(filter(None, parts))


def _location_words(location: Object) -> str:
    return f"{location.get('latitude')}, {location.get('longitude')}"


def _answers(sent: object) -> dict[str, Any] | None:
    return answers_in(sent.get("data")) if isinstance(sent, dict) else None


def _mini_app_words(sent: Object) -> str:
    answers = _answers(sent)
    lines = [_string(sent, "data")] if answers is None else lines_of(answers)
    return "\n".join(filter(None, (_string(sent, "button_text"), *lines)))


# A venue is repeated in `location`, so it comes first.
_WORDS: Mapping[str, Callable[[Object], str | None]] = {
    "contact": _contact_words,
    "venue": _venue_words,
    "location": _location_words,
    "poll": lambda poll: reading("poll", poll),
    "dice": lambda dice: _string(dice, "emoji"),
    "web_app_data": _mini_app_words,
    "sticker": lambda sticker: _string(sticker, "emoji"),
}


def _unknown_kind(message: Object) -> str | None:
    """Returns the member with the content of a message of an unknown kind; None for known kinds."""
    # A poll and the answers of a mini app count as unknown: their texts do not show all of them.
    known = (_ENVELOPE | _WORDS.keys() | {"photo", *_FILES}) - {"poll", "web_app_data"}
    return next((member for member in message if member not in known), None)


def _media(message: Object) -> Sequence[Media]:
    sizes = message.get("photo")
    if isinstance(sizes, list) and sizes:
        largest = max((size for size in sizes if isinstance(size, dict)), key=_area, default={})
        return [_file("photo", largest)]
    return [_file(member, _object(message, member)) for member in _FILES if member in message][:1]


def _file(member: str, file: Object) -> Media:
    ref, bytes = _string(file, "file_id"), file.get("file_size")
    if ref is None:
        raise BadPayload("A file has no file_id.")
    return Media(
        ref=ref,
        content_type=_string(file, "mime_type") or _TYPES.get(member),
        name=_string(file, "file_name"),
        bytes=bytes if isinstance(bytes, int) else None,
    )


def _area(size: Object) -> int:
    return _integer(size, "width") * _integer(size, "height")


def _name(person: Object) -> str | None:
    parts = (_string(person, "first_name"), _string(person, "last_name"))
    return " ".join(filter(None, parts)) or _string(person, "username")


def _own_phone(message: Object, sender: Object) -> str | None:
    """Returns the phone number that the message shares, if it is the sender's own; otherwise None."""
    contact = message.get("contact")
    if not isinstance(contact, dict) or contact.get("user_id") != sender.get("id"):
        return None
    return "+" + re.sub(r"[^0-9]", "", _string(contact, "phone_number") or "")


def _object(parent: Object, member: str) -> Object:
    found = parent.get(member)
    if not isinstance(found, dict):
        raise BadPayload(f"{member} is not an object.")
    return found


def _integer(parent: Object, member: str) -> int:
    found = parent.get(member)
    if not isinstance(found, int) or isinstance(found, bool):
        raise BadPayload(f"{member} is not an integer.")
    return found


def _string(parent: Object, member: str) -> str | None:
    """Returns the text without NULs, which PostgreSQL cannot store; None if nothing is left."""
    return _without_nul(parent.get(member))


def _without_nul(found: object) -> str | None:
    return found.replace("\0", "") or None if isinstance(found, str) else None


def _time(parent: Object, member: str) -> datetime:
    try:
        return unix_time(_integer(parent, member))
    except ValueError as error:
        raise BadPayload(f"{member} is not a time.") from error
