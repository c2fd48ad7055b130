"""One printed line for each delivery that the demo's receiver gets."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Protocol

from tests.stack.signatures import is_genuine

PATH = "/hooks"  # where the endpoint is whose secret is known


class Delivery(Protocol):
    """What a line is made from."""

    @property
    def path(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def at(self) -> float: ...
    @property
    def delivery_id(self) -> str: ...
    @property
    def signature(self) -> str: ...


class Report:
    """Judges signatures of deliveries to PATH by the secret in the file, which may change while the receiver runs."""

    def __init__(self, secret_file: Path) -> None:
        self._secret_file = secret_file
        self._attempts: Counter[str] = Counter()

    def line(self, delivery: Delivery) -> str:
        self._attempts[delivery.delivery_id] += 1
        kind, event = _kind_and_event(delivery.body)
        at = time.strftime("%H:%M:%S", time.localtime(delivery.at))
        attempt = self._attempts[delivery.delivery_id]
        return f"{at}  {kind:<22} {event}  {delivery.delivery_id}  {self._verdict(delivery)}  attempt {attempt}"

    def _verdict(self, delivery: Delivery) -> str:
        if delivery.path != PATH:
            return "another endpoint's"
        secret = self._secret_file.read_text().strip() if self._secret_file.exists() else ""
        genuine = bool(secret) and is_genuine(secret, delivery.signature, delivery.body)
        return "signature ok" if genuine else "SIGNATURE WRONG"


def _kind_and_event(body: bytes) -> tuple[str, str]:
    try:
        event = json.loads(body)
        return str(event["kind"]), str(event["id"])
    except (ValueError, TypeError, KeyError):
        return "(not an event)", "-"
