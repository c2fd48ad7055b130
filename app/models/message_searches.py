"""Searches of messages that contain all words of a text, newest first, in workspaces of any size.

The database's function `message_keys` decides which words a text has, and what the index holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from app.database import rows
from app.lib import ids
from app.models.conversations import Message

LONGEST_SEARCH = 200
MOST_IN_STATEMENT = 20_000
# A search first tries this many of the newest messages. If more than one in six matches, they fill a page.
LOOKED_AT = 300
# How many words of a search are looked up: the longest ones. Each word costs an index lookup for each step of 2^27 ms
# (37 hours) that the search covers.
MOST_WORDS = 10
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


def newest(workspace_id: str, filters: Mapping[str, Any], last_id: str | None, limit: int) -> list[Message]:
    """Returns the first `limit` messages after `last_id` that match every filter, the latest first.

    Filters: `q` (words or beginnings of words, all of which the text has), `contact_id`, `conversation_id`. `since` and
    `until` are compared with the time in the message's identifier.
    """
    end = ids.bound("msg", filters["until"]) if "until" in filters else "msg_~"
    values = {**filters, "workspace_id": workspace_id, "limit": limit, "last_id": min(end, last_id or end)}
    values["first_id"] = ids.bound("msg", filters["since"]) if "since" in filters else ""
    found = _search(filters, values) if "q" in filters else _ids(_list(filters), values)
    return list(Message.select().where(Message.id.in_(found)).order_by(Message.id.desc())) if found else []


def outbound(workspace_id: str, status: str | None, last_id: str | None, limit: int) -> list[Message]:
    """Returns the first `limit` messages to contacts after `last_id`, newest first.

    With a status, only messages that have it. No index covers the status, so all messages are examined,
    MOST_IN_STATEMENT at a time.
    """
    values = {"workspace_id": workspace_id, "status": status, "last_id": last_id or "msg_~", "many": MOST_IN_STATEMENT}
    found: list[str] = []
    while values["last_id"] is not None:
        found += _ids(_OUTBOUND, {**values, "limit": limit - len(found)})
        if len(found) == limit:
            break
        [(values["last_id"],)] = rows(_END_OF_LOOK, values)
    return list(Message.select().where(Message.id.in_(found)).order_by(Message.id.desc())) if found else []


def _search(filters: Mapping[str, Any], values: dict[str, Any]) -> list[str]:
    words = _words(filters["q"])
    if not words:
        return []
    values["sought"] = _sought(words).replace("#", "0000")
    [(number, oldest, found)] = rows(_among_newest(filters), values)
    if number < LOOKED_AT or len(found) == values["limit"]:
        return list(found)
    [(first_id, contact_ids)] = rows(_bounds(filters), values)
    values |= {"last_id": oldest, "limit": values["limit"] - len(found)}
    values |= {"times": _times(first_id, oldest), "sought": _sought(words, contact_ids or ())}
    return [*found, *_ids(_by_time(filters), values)]


def _words(text: str) -> list[str]:
    """Returns the words of the text to look up: the longest ones, up to MOST_WORDS."""
    keys = "SELECT substr(key, 5) FROM unnest(tsvector_to_array(message_keys('msg_00000', '', '', %s))) AS key"
    words = [word for (word,) in rows(keys, (text,)) if word and word != "@"]
    return sorted(words, key=len, reverse=True)[:MOST_WORDS]


def _sought(words: Iterable[str], contact_ids: Sequence[str] = ()) -> str:
    """Returns the `tsquery` for messages with all the words, of any of the contacts.

    Without contacts, messages of all contacts match. The caller replaces each `#` by a prefix of keys. Words and
    identifiers contain no characters with a meaning in a `tsquery`.
    """
    contacts = " | ".join(f"'#@{contact_id[-10:]}'" for contact_id in contact_ids)
    return " & ".join([*(f"'#{word}':*" for word in words), *([f"({contacts})"] if contacts else [])])


def _times(first_id: str, last_id: str) -> list[str]:
    """Returns the key prefixes of all time steps from `last_id` back to `first_id`, both included."""
    numbers = range(_number(last_id), _number(first_id) - 1, -1)
    return ["".join(_DIGITS[each >> shift & 31] for shift in (13, 8, 3)) + str(each & 7) for each in numbers]


def _number(message_id: str) -> int:
    """Returns a message's time in steps of 2^27 ms, without the three bits that last a century."""
    return reduce(lambda number, digit: number << 5 | _DIGITS.index(digit), message_id[5:9], 0) >> 2


def _owner(filters: Mapping[str, Any]) -> str:
    """Returns the column of the narrowest owner in the filters, whose index the search uses."""
    return next((each for each in ("conversation_id", "contact_id") if each in filters), "workspace_id")


def _between(owner: str) -> str:
    """Returns the condition for the owner's messages in the range; only the owner's index fits it.

    With the index of all identifiers, the planner might read everything that others have written since.
    """
    return f"({owner}, id) >= (%({owner})s, %(first_id)s) AND ({owner}, id) < (%({owner})s, %(last_id)s)"


def _others(filters: Mapping[str, Any], owner: str | None = None) -> str:
    """Returns conditions on the workspace, conversation and contact, except `owner`, each with AND."""
    conditions = {
        "workspace_id": "workspace_id = %(workspace_id)s",
        "conversation_id": "conversation_id = %(conversation_id)s",
        "contact_id": "contact_id = %(contact_id)s",
    }
    given = (name for name in conditions if name != owner and name in {"workspace_id", *filters})
    return "".join(f" AND {conditions[name]}" for name in given)


def _list(filters: Mapping[str, Any]) -> str:
    owner = _owner(filters)
    return f"""
        SELECT id FROM messages WHERE {_between(owner)} {_others(filters, owner)}
        ORDER BY {owner} DESC, id DESC LIMIT %(limit)s
    """


def _among_newest(filters: Mapping[str, Any]) -> str:
    """Returns SQL for the number of newest messages examined, the oldest of them, and the matches."""
    owner = _owner(filters)
    return f"""
        WITH newest AS MATERIALIZED (
            SELECT * FROM messages WHERE {_between(owner)} ORDER BY {owner} DESC, id DESC LIMIT {LOOKED_AT}
        )
        SELECT count(*), min(id), ARRAY(
            SELECT id FROM newest WHERE text IS NOT NULL {_others(filters)}
                AND message_keys('msg_00000', '', '', text) @@ %(sought)s::tsquery
            ORDER BY id DESC LIMIT %(limit)s)
        FROM newest
    """


def _bounds(filters: Mapping[str, Any]) -> str:
    """Returns SQL for the first message of the range, and for the contacts of all messages in it.

    The SQL yields NULL for the contacts if they can be any in the workspace. Soon after a merge, a conversation's
    messages may still have another contact than the conversation.
    """
    owner, contact_ids = _owner(filters), "NULL::text[]"
    if "conversation_id" in filters:
        contact_ids = """ARRAY(
            SELECT contact_id FROM conversations WHERE id = %(conversation_id)s UNION
            (SELECT contact_id FROM messages WHERE conversation_id = %(conversation_id)s ORDER BY id DESC LIMIT 1))"""
    elif "contact_id" in filters:
        contact_ids = "ARRAY[%(contact_id)s]"
    first = f"SELECT id FROM messages WHERE {_between(owner)} ORDER BY {owner}, id LIMIT 1"
    return f"SELECT ({first}), {contact_ids}"


def _by_time(filters: Mapping[str, Any]) -> str:
    """Returns SQL that looks each step of time up by index, the latest first, until the page is full."""
    # OFFSET 0 keeps the planner from using any other index.
    return f"""
        SELECT found.id FROM unnest(%(times)s::text[]) WITH ORDINALITY AS times(time, number) CROSS JOIN LATERAL (
            SELECT id FROM (
                SELECT * FROM messages
                WHERE text IS NOT NULL AND message_keys(id, workspace_id, contact_id, text)
                    @@ replace(%(sought)s, '#', time || right(%(workspace_id)s, 5))::tsquery OFFSET 0) AS matching
            WHERE id >= %(first_id)s AND id < %(last_id)s {_others(filters)}
            ORDER BY id DESC LIMIT %(limit)s) AS found
        LIMIT %(limit)s
    """


def _ids(query: str, values: Mapping[str, Any]) -> list[str]:
    return [message_id for (message_id,) in rows(query, values)]


_LOOKED_AT = """
    SELECT id, direction, status FROM messages WHERE workspace_id = %(workspace_id)s AND id < %(last_id)s
    ORDER BY workspace_id DESC, id DESC LIMIT %(many)s
"""
_OUTBOUND = f"""
    SELECT id FROM ({_LOOKED_AT}) AS looked_at
    WHERE direction = 'out' AND status = coalesce(%(status)s, status) ORDER BY id DESC LIMIT %(limit)s
"""
_END_OF_LOOK = f"SELECT CASE count(*) WHEN %(many)s THEN min(id) END FROM ({_LOOKED_AT}) AS looked_at"
