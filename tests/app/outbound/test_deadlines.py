"""Deadlines that share a timer."""

from __future__ import annotations

import asyncio

import pytest

from app.outbound.deadlines import Deadlines


class Item:
    """Notes that it has expired."""

    def __init__(self, expired: list[str], name: str) -> None:
        self._expired = expired
        self._name = name

    def expire(self) -> None:
        self._expired.append(self._name)
        if self._name == "broken":
            raise RuntimeError


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_items_expire_in_the_order_of_their_deadlines_though_one_breaks() -> None:
    expired: list[str] = []

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        deadlines = Deadlines()
        for name, seconds in (("last", 0.3), ("ended", 0.2), ("middle", 0.2), ("broken", 0.1), ("first", 0.05)):
            item = Item(expired, name)
            deadlines.begin(item, seconds)
            if name == "ended":
                deadlines.end(item, seconds)
        while len(expired) < 4:
            await asyncio.sleep(0.01)
        assert not deadlines._groups

    asyncio.run(story())
    assert expired == ["first", "broken", "middle", "last"]
