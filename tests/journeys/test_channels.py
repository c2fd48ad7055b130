"""Messages come in and go out over three channels once and in order, whatever happens to processes and providers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.journeys.conftest import Ends, serve
from tests.journeys.conversing import Providers, begin_talks, count_statuses, flaws, interleaved
from tests.journeys.faults import empty_redis, kill, let_pass
from tests.journeys.shops import open_shop
from tests.journeys.waiting import wait_until
from tests.providers.base import Trouble
from tests.providers.telegram import throttled
from tests.stack.ports import free_port
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

PROCESSES = {
    **{"web": 1, "realtime": 1, "writes": 1, "automations": 1, "messages": 2, "deliveries": 1},
    **{"retries": 1, "scheduler": 1},
}
# Messages in, and as many out.
TALKS = int(os.environ.get("TALKS", "240"))
# A message whose worker died becomes unknown when its lease ends, and only then the next one goes out.
SETTLE_SECONDS = 300 + TALKS // 5


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    return free_port(), free_port()


@pytest.fixture(scope="module")
def talking(ports: tuple[int, int], ends: Ends) -> Iterator[Stack]:
    settings = {
        "TELEGRAM_API_URL": f"https://127.0.0.1:{ports[0]}",
        "WHATSAPP_API_URL": f"https://127.0.0.1:{ports[1]}/v23.0",
    }
    yield from serve(PROCESSES, settings, on_end=ends)


@pytest.fixture
def providers(talking: Stack, ports: tuple[int, int]) -> Iterator[Providers]:
    talking.processes.wait_ready()
    providers = Providers.beside(talking.certificates.ca_file.parent, ports)
    yield providers
    providers.stop()


@pytest.fixture
def webhooks(talking: Stack) -> Iterator[Receiver]:
    receiver = Receiver(talking.certificates.ca_file.parent)
    receiver.start()
    yield receiver
    receiver.stop()


def kill_each(stack: Stack) -> None:
    for kind in ("messages", "web", "writes", "realtime", "automations", "scheduler", "messages"):
        kill(stack, kind)
        let_pass(1)


def restart_postgres(stack: Stack) -> None:
    stack.postgres.stop()
    stack.postgres.start()


def trouble(providers: Providers) -> None:
    """The providers throttle, hang, and cut connections, after the request too."""
    for server, path in ((providers.telegram, "sendMessage"), (providers.whatsapp, "messages")):
        server.happens(Trouble.CUT_AFTER, Trouble.CUT_UNTAKEN, path=path, times=2)
        server.cut_before(True)
    let_pass(2)
    providers.telegram.happens(throttled(2), Trouble.HANG, path="sendMessage")
    for server in (providers.telegram, providers.whatsapp):
        server.cut_before(False)


def test_messages_are_stored_and_sent_once_and_in_order_under_all_faults(
    talking: Stack, providers: Providers, webhooks: Receiver, report: Callable[[object], None]
) -> None:
    talks = begin_talks(talking, open_shop(talking, webhooks), providers, each=max(4, min(40, TALKS // 20)))
    rounds = TALKS // len(talks.talkers)

    began = time.monotonic()
    threads = [
        *(threading.Thread(target=_write, args=(talks.say, "in", talks.talkers[n::4], rounds)) for n in range(4)),
        *(threading.Thread(target=_write, args=(talks.answer, "out", talks.talkers[n::4], rounds)) for n in range(4)),
    ]
    for thread in threads:
        thread.start()
    trouble(providers)
    kill_each(talking)
    empty_redis(talking)
    restart_postgres(talking)
    for thread in threads:
        thread.join()
    talking.processes.wait_ready()
    wait_until(lambda: talks.unfinished() == 0, SETTLE_SECONDS, "all is stored and sent")

    counted = count_statuses(talks)
    report(f"{sum(map(len, talks.said.values()))} in, {dict(counted)} out, {time.monotonic() - began:.1f} s")
    assert list(flaws(talks)) == []
    assert sum(map(len, talks.said.values())) == (rounds + 1) * len(talks.talkers)
    assert counted.total() == rounds * len(talks.talkers)


def _write(say: Callable[..., None], word: str, talkers: list[object], rounds: int) -> None:
    for talker, number in interleaved(talkers, rounds):  # type: ignore[arg-type]
        say(talker, f"{word}-{talker.number}-{number}")
