"""What users do in the long run: enable stopped endpoints, and resend deliveries."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.journeys.audit import rows
from tests.journeys.shops import NoAnswer, Shop
from tests.stack.stack import Stack

STATUSES = ("failed", "held", "delivered")


@dataclass(frozen=True)
class Wish:
    """A request about an endpoint, and whether it was accepted."""

    what: str
    endpoint_id: str
    at: float
    accepted: bool


class Wishes:
    """Makes random requests and records them."""

    def __init__(self, stack: Stack, shops: Sequence[Shop], chance: random.Random) -> None:
        self.made: list[Wish] = []
        self._stack, self._shops, self._chance = stack, shops, chance

    def make_some(self) -> None:
        for shop in self._shops:
            if self._chance.random() < 0.5 and _is_stopped(self._stack, shop):
                self.enable(shop, release_held=self._chance.random() < 0.7)
        shop = self._chance.choice(self._shops)
        if self._chance.random() < 0.4:
            since = datetime.now(UTC) - timedelta(seconds=self._chance.uniform(5, 15))
            statuses = self._chance.sample(STATUSES, self._chance.randint(1, 3))
            self.resend(shop, {"statuses": statuses, "since": since.isoformat()})
        if self._chance.random() < 0.4:
            self._resend_one(shop)

    def enable(self, shop: Shop, *, release_held: bool) -> None:
        self._ask("enable", shop, f"webhooks/endpoints/{shop.endpoint_id}/enable", {"release_held": release_held})

    def resend(self, shop: Shop, choice: dict[str, Any]) -> None:
        self._ask("resend", shop, f"webhooks/endpoints/{shop.endpoint_id}/resend", choice)

    def delete(self, shop: Shop) -> None:
        self._ask("delete", shop, f"webhooks/endpoints/{shop.endpoint_id}", None, "DELETE")

    def _resend_one(self, shop: Shop) -> None:
        ended = "SELECT id FROM deliveries WHERE endpoint_id = %s AND status <> 'pending' ORDER BY id DESC LIMIT 20"
        if found := rows(self._stack, ended, shop.endpoint_id):
            [delivery_id] = self._chance.choice(found)
            self._ask("resend one", shop, f"webhooks/deliveries/{delivery_id}/resend", None)

    def _ask(self, what: str, shop: Shop, path: str, document: object, method: str = "POST") -> None:
        try:
            accepted = shop.caller().call(method, path, document).status == 202
        except NoAnswer:
            accepted = False
        self.made.append(Wish(what, shop.endpoint_id, time.time(), accepted))


def _is_stopped(stack: Stack, shop: Shop) -> bool:
    return rows(stack, "SELECT state FROM endpoints WHERE id = %s", shop.endpoint_id) == [("stopped",)]
