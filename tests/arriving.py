"""What arrives in tests: a kind of channel whose webhooks are pickled arrivals, and what its contacts send."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from app.channels.base import Account, Outcome, Request, Verdict
from app.channels.inbound import Arrival, BadPayload, Echoed, Media, Receipt, Received
from app.channels.kinds import CHANNEL_KINDS
from app.database import rows
from app.domain.channels import arrivals
from app.domain.receiving import arrival_processing
from app.models.channels import Channel
from app.outbound import Answer
from tests.cast import all_of
from tests.talks import make_channel
from tests.wires import Wire

AT = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2)


class Post(Wire):
    """A webhook is genuine if it has the header `x-secret` with the channel's secret."""

    name: ClassVar[str] = "post"
    window: ClassVar[timedelta | None] = timedelta(hours=24)
    most_hook_bytes: ClassVar[int] = 10_000

    def challenged(self, account: Account, query: Mapping[str, str]) -> str | None:
        return query.get("say") if query.get("secret") == account.credentials.get("secret") else None

    def is_genuine(self, account: Account, headers: Mapping[str, str], body: bytes) -> bool:
        secret = account.credentials.get("secret")
        return secret is not None and headers.get("x-secret") == secret

    def arrivals(self, account: Account, body: bytes) -> Sequence[Arrival]:
        if not body.startswith(b"\x80"):
            raise BadPayload("It is no pickle.")
        items = list(pickle.loads(body))
        if not body.endswith(pickle.STOP):
            raise BadPayload("Something follows the pickle.", items)
        return items

    def locating(self, account: Account, media: Media) -> Request:
        return Request("GET", f"{account.settings['files']}/where/{media.ref}")

    def located(self, account: Account, answer: Answer) -> Request | Verdict:
        if answer.status == 200:
            return Request("GET", answer.body.decode())
        if answer.status == 404:
            return Verdict(Outcome.FAILED, code="gone", detail="The file is gone.")
        return Verdict(Outcome.LATER, pause_seconds=0.05)


POST = Post()
CHANNEL_KINDS[POST.name] = POST  # type: ignore[index]


def make_post(workspace_id: str, **settings: Any) -> Channel:
    """A connected channel of this kind."""
    channel_id = make_channel(workspace_id)
    rows("UPDATE channels SET kind = 'post' WHERE id = %s", (channel_id,))
    Channel.update(settings=settings).where(Channel.id == channel_id).execute()
    return Channel.get_by_id(channel_id)


def received(text: str | None = "Hi", key: str = "1", sender: str = "ada", **fields: Any) -> Received:
    known = {"key": key, "sender": sender, "peer": f"chat-{sender}", "provider_id": f"m-{key}", "at": AT}
    return Received(**known | {"text": text} | fields)


def echoed(text: str = "Hello", key: str = "e1", recipient: str = "ada", **fields: Any) -> Echoed:
    return Echoed(key, recipient, f"chat-{recipient}", f"m-{key}", AT, text, **fields)


def receipt(status: Any, provider_id: str = "out-1", **fields: Any) -> Receipt:
    key = fields.pop("key", f"{provider_id}:{status}")
    return Receipt(key, fields.pop("recipient", "ada"), provider_id, AT, status, **fields)


def arrive(channel: Channel, *items: Arrival) -> None:
    """Stores these and has them processed, as a worker does."""
    arrivals.store(channel, items)
    while process():
        pass


def process() -> bool:
    """Processes what is due, for a slice of time; returns whether it got anywhere."""
    owners = all_of("SELECT DISTINCT sender_key FROM arrivals WHERE due_at <= now()")
    before = all_of(_DUE)
    arrival_processing.work(*owners)
    return bool(all_of(_DUE) != before)


_DUE = "SELECT count(*) FROM arrivals WHERE due_at <= now()"
