"""Hooks: checks the webhooks that providers send to a channel's address, and stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cryptography.fernet import InvalidToken

from app import bounds
from app.bounds import Rates
from app.channels.base import Account
from app.channels.inbound import Arrival, BadPayload
from app.domain.channels import arrivals, channels
from app.errors import InsufficientScope, NotFound, TooManyArrivals, Unavailable
from app.lib import ids
from app.models.channels import Channel

_LATELY = Rates()


def find(kind: str, channel_id: str) -> Channel:
    """Returns the channel of the hook. Raises NotFound, also for kinds without a provider."""
    found: Channel | None = None
    if ids.is_id(channel_id, "chn"):
        found = Channel.get_or_none(Channel.id == channel_id, Channel.kind == kind, Channel.deleted_at.is_null())
    if found is None or not channels.kind_of(found).has_provider:
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
        _store(channel, error.readable, trace_id)
        raise
    return _store(channel, items, trace_id)


def _store(channel: Channel, items: Sequence[Arrival], trace_id: str) -> int:
    bound = bounds.ARRIVALS_PER_WORKSPACE
    if seconds := _LATELY.take(channel.workspace_id, bound, len(items)):
        raise TooManyArrivals(bound.most, seconds)
    return arrivals.store(channel, items, trace_id=trace_id)


def _account(channel: Channel) -> Account:
    try:
        return channels.account_of(channel)
    except InvalidToken as error:
        raise Unavailable("No key in SECRET_KEY decrypts the channel's credentials.") from error
