"""A provider answers 500, hangs or cannot be reached while many messages wait for it: messages of another provider."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import psutil

from tests.doors.services import Tenant, service, tenant
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.waiting import wait_until
from tests.providers.base import Reply, Trouble
from tests.providers.telegram import TOKEN, Bot, Telegram
from tests.providers.whatsapp import CREDENTIALS, NUMBER, WhatsAppServer
from tests.stack.ports import free_port
from tests.stack.posts import Posted, connect, post
from tests.stack.stack import Stack

Tell = Callable[[str], None]
PROCESSES = {"web": 1, "writes": 1, "messages": 1, "scheduler": 1}
CONVERSATIONS, EACH, SECONDS = 400, 3, 20
MOST_RECOVERY_SECONDS, MOST_UNKNOWN = 240, 20
OUTAGES: Mapping[str, Callable[[Telegram, bool], None]] = {
    "answers 500": lambda provider, is_away: provider.always(Reply(500) if is_away else None, "/sendMessage"),
    "hangs": lambda provider, is_away: provider.always(Trouble.HANG if is_away else None, "/sendMessage"),
    "cannot be reached": Telegram.cut_before,
}


def measure(tell: Tell) -> None:
    """The victim's act: a message of its own is queued by the API, and has reached the other provider."""
    for name, outage in OUTAGES.items():
        ports = free_port(), free_port()
        settings = {
            "TELEGRAM_API_URL": f"https://127.0.0.1:{ports[0]}",
            "WHATSAPP_API_URL": f"https://127.0.0.1:{ports[1]}/v23.0",
        }
        with service(PROCESSES, settings) as stack:
            directory = stack.certificates.ca_file.parent
            provider, other = Telegram(directory, ports[0]), WhatsAppServer(directory, ports[1])
            provider.start()
            other.start()
            try:
                _suffer(stack, provider, other, name, outage, tell)
            finally:
                provider.stop()
                other.stop()


def _suffer(
    stack: Stack,
    provider: Telegram,
    other: WhatsAppServer,
    name: str,
    outage: Callable[[Telegram, bool], None],
    tell: Tell,
) -> None:
    waiting, send = tenant(stack, "Waiting"), sender(stack, tenant(stack, "Victim"), other)
    provider.bots = {TOKEN: Bot(TOKEN)}
    channel = connect(stack, waiting.workspace_id, "telegram", {"bot_token": TOKEN, "hook_secret": "s"}, {})
    send()
    outage(provider, True)
    talks, before = post(stack, waiting.workspace_id, [channel], CONVERSATIONS, EACH), costs(stack)
    with victim(send, every_seconds=0.1) as living:
        time.sleep(SECONDS)
    spent, memory = (now - then for now, then in zip(costs(stack), before, strict=True))
    found = statuses(stack, channel)
    outage(provider, False)
    began = time.monotonic()
    wait_until(lambda: not {"queued", "sending"} & statuses(stack, channel).keys(), MOST_RECOVERY_SECONDS, "all end")
    seconds = time.monotonic() - began
    tell(f"it {name} for {SECONDS} s: {found}, {spent / SECONDS:.1%} of a core, {memory:+.1f} MiB")
    tell(f"    {seconds:.0f} s later: {statuses(stack, channel)}")
    tell(f"    a message of the other provider: {living}")
    check(provider.bots[TOKEN], talks)
    assert found.get("unknown", 0) <= MOST_UNKNOWN
    living.check()


def sender(stack: Stack, owner: Tenant, other: WhatsAppServer) -> Callable[[], None]:
    """Writes in a conversation that nobody else has written in, and waits until the provider has it."""
    channel = connect(stack, owner.workspace_id, "whatsapp", CREDENTIALS, {"phone_number_id": NUMBER})
    caller, talks = owner.caller(), post(stack, owner.workspace_id, [channel], 2_000, 0)

    def send() -> None:
        talk = talks.pop().conversation_id
        caller.apply("POST", f"conversations/{talk}/messages", {"text": talk})
        wait_until(lambda: any(talk in str(sent) for sent in list(other.messages.values())), 30, "it is sent")

    return send


def statuses(stack: Stack, channel: str) -> dict[str, int]:
    return dict(rows(stack, "SELECT status, count(*) FROM messages WHERE channel_id = %s GROUP BY 1", channel))


def costs(stack: Stack) -> tuple[float, float]:
    """What the process of messages has used so far: seconds of CPU, and MiB of memory."""
    [pid] = stack.processes.pids("messages")
    each = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    seconds = sum(sum(process.cpu_times()[:2]) for process in each)
    return seconds, sum(process.memory_full_info().uss for process in each) / 1024**2


def check(bot: Bot, talks: Sequence[Posted]) -> None:
    """What was sent was sent once, and in the order of its conversation."""
    sent: defaultdict[int, list[str | None]] = defaultdict(list)
    for message in bot.sent:
        sent[message.chat_id].append(message.text)
    for talk in talks:
        texts = sent[int(talk.peer)]
        assert texts == [text for text in talk.texts.values() if text in texts], f"{talk.peer}: {texts}"
