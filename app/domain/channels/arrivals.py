"""Arrivals: messages and receipts over channels, stored before the webhook is answered.

Each arrival is stored once, and is then the mail of its sender: a contact as a channel knows it. A sender's arrivals,
receipts and echoes included, are processed in order, independently of the workspace's writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from cryptography.fernet import InvalidToken

from app import bounds, mailbox, metrics, sql
from app.bounds import Rates
from app.channels.base import Account
from app.channels.inbound import Arrival, BadPayload, Blocked, Echoed, Edited, Media, Moved, Receipt, Received
from app.database import database, rows
from app.domain.channels import channels
from app.errors import InsufficientScope, NotFound, TooManyArrivals, Unavailable
from app.lib import clock, ids, json
from app.mailbox import Mail, Waiting
from app.models.arrivals import Arrival as Stored
from app.models.channels import Channel

MAIL = Mail(table="arrivals", owner="sender_key", queue="arrivals", order="position", exclusive=True)
# Receipts that came before their message, and wait for it.
WAITING = Waiting(MAIL, "next_attempt_at")

# Longer than the week for which providers repeat webhooks.
KEYS_KEPT_DAYS = 8
# The most given-up arrivals that one transaction queues again.
RETRIED = 1_000
# Older items are dropped: somebody who recorded a webhook could replay it once its keys are gone. Half a day allows for
# clocks that differ.
_OLDEST = timedelta(days=KEYS_KEPT_DAYS, hours=-12)
_KINDS: Mapping[str, type[Arrival]] = {
    "received": Received,
    "edited": Edited,
    "echoed": Echoed,
    "receipt": Receipt,
    "blocked": Blocked,
    "moved": Moved,
}
_NAMES = {of: name for name, of in _KINDS.items()}
_LATELY = Rates()


def find_channel(kind: str, channel_id: str) -> Channel:
    """Returns the channel of the hook. Raises NotFound, also for kinds without a provider."""
    found = channels.find_anywhere(kind, channel_id)
    if not channels.kind_of(found).has_provider:
        raise NotFound()
    return found


def prove(channel: Channel, query: Mapping[str, str]) -> str:
    """Returns the answer that proves to the provider that the address is ours.

    Raises InsufficientScope if the request is not the provider's or has a wrong token.
    """
    answer = channels.kind_of(channel).challenged(_account(channel), query)
    if answer is None:
        raise InsufficientScope("This is not how the provider asks, or not with this channel's token.")
    return answer


def take(channel: Channel, headers: Mapping[str, str], body: bytes, *, trace_id: str) -> int:
    """Stores the webhook's arrivals, to be processed later; returns how many are new.

    Names in `headers` are in lower case. Raises InsufficientScope, before reading anything, if the webhook is not from
    the provider. Raises BadPayload if a part cannot be read. The rest is stored even so: the provider may repeat the
    webhook for days, and keys prevent duplicates. Raises TooManyArrivals, with nothing stored.
    """
    kind, account = channels.kind_of(channel), _account(channel)
    if not kind.is_genuine(account, headers, body):
        raise InsufficientScope("The webhook is not signed as the channel's provider does it.")
    try:
        items = kind.arrivals(account, body)
    except BadPayload as error:
        _store_limited(channel, error.readable, trace_id)
        raise
    return _store_limited(channel, items, trace_id)


def _store_limited(channel: Channel, items: Sequence[Arrival], trace_id: str) -> int:
    bound = bounds.ARRIVALS_PER_WORKSPACE
    if seconds := _LATELY.take(channel.workspace_id, bound, len(items)):
        raise TooManyArrivals(bound.most, seconds)
    return store(channel, items, trace_id=trace_id)


def _account(channel: Channel) -> Account:
    try:
        return channels.account_of(channel)
    except InvalidToken as error:
        raise Unavailable("No key in SECRET_KEY decrypts the channel's credentials.") from error


def store(channel: Channel, items: Sequence[Arrival], *, trace_id: str | None = None) -> int:
    """Stores the items in order, and rings for them after the commit; returns how many are new.

    Leaves out items that are almost eight days old, and items whose key came over the channel within eight days. Runs
    one statement.
    """
    since = clock.now() - _OLDEST
    young = [item for item in items if item.at > since]
    metrics.ARRIVALS.labels("outdated").inc(len(items) - len(young))
    if not young:
        return 0
    stored = rows(
        sql.prepared("store_arrivals"),
        {
            "workspace_id": channel.workspace_id,
            "channel_id": channel.id,
            "trace_id": trace_id or ids.new("hook"),
            "ids": sql.array(ids.new("arr") for _ in young),
            "senders": sql.array(sender_key(channel.id, _sender_of(item)) for item in young),
            "keys": sql.array(item.key for item in young),
            "kinds": sql.array(_NAMES[type(item)] for item in young),
            "payloads": sql.array(_written(item) for item in young),
        },
    )
    for sender in {sender for (sender,) in stored}:
        database.after_commit(partial(mailbox.ring, MAIL, sender))
    metrics.ARRIVALS.labels("stored").inc(len(stored))
    metrics.ARRIVALS.labels("repeated").inc(len(young) - len(stored))
    return len(stored)


def sender_key(channel_id: str, sender: str) -> str:
    """Returns the owner of a sender's mail. `sender`: the sender's identifier at the provider."""
    return f"{channel_id}/{sender}"


def read(stored: Stored) -> Arrival:
    """Returns the arrival, restored from what `store` stored."""
    kind = _KINDS[stored.kind]
    return kind(**{name: _read(name, value) for name, value in (stored.payload or {}).items()})


def retry(arrival_id: str | None = None) -> int:
    """Queues one given-up arrival again, or all if `arrival_id` is None; returns how many.

    Each transaction queues up to RETRIED. Raises NotFound if the arrival was not given up.
    """
    retried = _retry("id = %s", arrival_id) if arrival_id else 0
    if arrival_id and not retried:
        raise NotFound("No such arrival was given up.")
    while arrival_id is None and (some := _retry("true")):
        retried += some
    return retried


def represent(stored: Stored) -> dict[str, Any]:
    """Returns the arrival as commands show it, without its content."""
    names = ("id", "workspace_id", "channel_id", "kind", "problem", "errors", "deaths", "trace_id", "created_at")
    return {name: getattr(stored, name) for name in names}


def _retry(condition: str, *parameters: str) -> int:
    again = rows(
        f"""
        UPDATE arrivals SET problem = NULL, errors = 0, deaths = 0, due_at = clock_timestamp()
        WHERE id = ANY(ARRAY(
            SELECT id FROM arrivals WHERE problem IS NOT NULL AND {condition}
            ORDER BY id LIMIT %s FOR NO KEY UPDATE))
        RETURNING sender_key
        """,
        (*parameters, RETRIED),
    )
    for sender in {sender for (sender,) in again}:
        mailbox.ring(MAIL, sender)
    return len(again)


def _sender_of(item: Arrival) -> str:
    if isinstance(item, Moved):
        return item.formers[0]  # queued behind the arrivals under the former name
    return item.recipient if isinstance(item, (Echoed, Receipt)) else item.sender


def _written(item: Arrival) -> str:
    # Defaults are left out: a process of an older version does not know every field.
    given = {each.name: (getattr(item, each.name), each.default) for each in fields(item)}
    content = {name: value for name, (value, default) in given.items() if value is not default}
    if "media" in content:
        content["media"] = [{each.name: getattr(one, each.name) for each in fields(one)} for one in content["media"]]
    return json.dumps(content).decode()


def _read(name: str, value: Any) -> Any:
    if name == "at":
        return datetime.fromisoformat(value)
    if name == "media":
        return tuple(Media(**each) for each in value)
    return value
