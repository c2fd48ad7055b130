"""The faults that happen to a stack with played providers while messages come in and go out."""

from __future__ import annotations

from tests.journeys.conversing import Providers
from tests.journeys.faults import kill, let_pass
from tests.providers.base import Trouble
from tests.providers.telegram import throttled
from tests.stack.stack import Stack


def kill_each(stack: Stack) -> None:
    for kind in ("messages", "web", "writes", "realtime", "automations", "scheduler", "messages"):
        kill(stack, kind)
        let_pass(1)


def trouble(providers: Providers) -> None:
    """The providers throttle, hang, and cut connections, after the request too."""
    for server, path in ((providers.telegram, "sendMessage"), (providers.whatsapp, "messages")):
        server.happens(Trouble.CUT_AFTER, Trouble.CUT_UNTAKEN, path=path, times=2)
        server.cut_before(True)
    let_pass(2)
    providers.telegram.happens(throttled(2), Trouble.HANG, path="sendMessage")
    for server in (providers.telegram, providers.whatsapp):
        server.cut_before(False)
