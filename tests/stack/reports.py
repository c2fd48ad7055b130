"""The line that the demo's receiver prints for each webhook."""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence

from tests.stack.receiver import Received
from tests.stack.signatures import is_genuine


class Report:
    """Verifies webhooks. `secrets_of(delivery_id)` gives the secrets of the endpoint that a delivery belongs to."""

    def __init__(self, secrets_of: Callable[[str], Sequence[str]]) -> None:
        self._secrets_of = secrets_of
        self._attempts: Counter[str] = Counter()

    def line(self, received: Received) -> str:
        """The line for a webhook. Numbers its attempts by the calls."""
        self._attempts[received.delivery_id] += 1
        kind, event = _kind_and_event(received.body)
        at = time.strftime("%H:%M:%S", time.localtime(received.at))
        attempt = self._attempts[received.delivery_id]
        return (
            f"{at}  a webhook of {kind}, {self._verdict(received)}  {event}  {received.delivery_id}  attempt {attempt}"
        )

    def _verdict(self, received: Received) -> str:
        secrets = self._secrets_of(received.delivery_id)
        genuine = any(is_genuine(secret, received.signature, received.body) for secret in secrets)
        return "signature verified" if genuine else "SIGNATURE WRONG"


def _kind_and_event(body: bytes) -> tuple[str, str]:
    try:
        event = json.loads(body)
        return str(event["kind"]), str(event["id"])
    except (ValueError, TypeError, KeyError):
        return "no kind (not an event)", "-"
