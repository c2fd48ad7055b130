"""PostgreSQL hangs: people and programs are answered meanwhile, and nothing is lost or accepted twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import requests

from tests.doors.streams import cookie
from tests.journeys.audit import Figures, audit
from tests.journeys.load import Load
from tests.journeys.shops import open_shops
from tests.journeys.waiting import wait_until
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

# Long enough for a busy machine; `python -m tests.doors hung` measures it.
ANSWERED_SECONDS = 30


@pytest.fixture
def load(stack: Stack, receiver: Receiver) -> Load:
    """More clients than `web` has threads."""
    return Load(open_shops(stack, receiver, 2), clients=10)


def test_while_postgres_hangs_all_are_answered_and_nothing_is_lost_or_accepted_twice(
    stack: Stack, receiver: Receiver, load: Load, report: Callable[[Figures], None]
) -> None:
    shop = load.shops[0]
    page, live = f"{stack.base_url}/workspaces/{shop.workspace_id}/contacts", f"http://127.0.0.1:{stack.realtime_port}"
    signed_in = {"Cookie": cookie(stack, shop.workspace_id, "hangs@example.com"), "Accept": "text/html"}
    assert requests.get(page, headers=signed_in, timeout=ANSWERED_SECONDS).status_code == 200
    with load:
        load.go_on()
        stack.postgres.freeze()
        try:
            asked = [page, f"{stack.base_url}/readyz", f"{live}/readyz", f"{live}/live/workspace"]
            answers = [requests.get(each, headers=signed_in, timeout=ANSWERED_SECONDS) for each in asked]
            is_alive = requests.get(f"{stack.base_url}/healthz", timeout=ANSWERED_SECONDS).ok
            wait_until(lambda: len(load.refused) > 100, ANSWERED_SECONDS, "clients are refused, again and again")
        finally:
            stack.postgres.thaw()
        load.go_on()

    figures = audit(stack, receiver, load)

    report(figures)
    assert [(each.status_code, "Retry-After" in each.headers) for each in answers] == [(503, True)] * 4
    assert is_alive
    assert set(load.refused) == {"Service unavailable"}
