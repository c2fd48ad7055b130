"""Requests of a kind of channel, made as the service makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_network
from urllib.parse import urlsplit

from app.channels.base import Account, ChannelKind, Outgoing, Request, Verdict
from app.outbound import Answer, Outbound
from tests.providers.base import Provider

MOST_BYTES = 32 * 1024 * 1024
# A busy machine needs seconds for a large body. Only where the provider hangs is the deadline what is waited for.
DEADLINE_SECONDS = 20
DEADLINE_WHERE_IT_HANGS = 2


def ask(provider: Provider, *requests: Request) -> Sequence[Answer]:
    """The answers to these requests, made one after the other."""

    async def story() -> Sequence[Answer]:
        outbound = Outbound(
            timeout_seconds=DEADLINE_SECONDS,
            allowed_networks=[ip_network("127.0.0.0/8")],
            ca_file=provider.certificates.ca_file,
        )
        answers = [
            await outbound.request(
                each.method,
                each.address,
                each.body,
                each.headers,
                most_bytes=MOST_BYTES,
                timeout_seconds=DEADLINE_WHERE_IT_HANGS
                if provider.hangs(urlsplit(each.address).path)
                else DEADLINE_SECONDS,
            )
            for each in requests
        ]
        await outbound.close()
        return answers

    return asyncio.run(story())


def send(provider: Provider, kind: ChannelKind, account: Account, outgoing: Outgoing) -> Verdict:
    """Prepares and sends a message."""
    prepared: str | Verdict | None = None
    preparing = kind.preparing(account, outgoing)
    if preparing is not None:
        prepared = kind.prepared(*ask(provider, preparing))
        if isinstance(prepared, Verdict):
            return prepared
    return kind.sent(outgoing, *ask(provider, kind.sending(account, outgoing, prepared)))


def fetch(provider: Provider, kind: ChannelKind, account: Account, located: Request | Verdict) -> bytes:
    """The file that was located."""
    assert isinstance(located, Request), located
    [answer] = ask(provider, located)
    assert answer.ok, answer
    return answer.body
