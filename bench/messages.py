"""Outbound messages: how many a second reach a provider over TLS, and what each costs.

They wait in several conversations of many channels. The channels' rates together are several times what one process
sends, so no rate slows it down. In each conversation, messages go out one after the other. Targets: 1,500 a second, and
at most half a statement for each message.
"""

import time
from dataclasses import dataclass
from statistics import median

from bench import sites
from bench.costs import each, measured, written
from bench.errors import BenchError
from bench.figures import Row, at_least, at_most, breakdown, growth
from bench.provider import Provider, playing
from bench.sites import Site, Tell
from bench.statements import counted
from tests.stack.ports import free_port
from tests.stack.posts import connect, post

PORT = free_port()
SETTINGS = {"WHATSAPP_API_URL": f"https://127.0.0.1:{PORT}"}
CHANNELS = 100
EACH = 5  # messages in each conversation
LEAST_PER_SECOND = 1_500
MOST_STATEMENTS = 0.5
PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Size:
    """How many messages are sent in a round, and how many rounds there are."""

    messages: int = 20_000
    rounds: int = 3


FULL, QUICK = Size(), Size(messages=2_000, rounds=1)


def run(site: Site, tell: Tell, size: Size = FULL) -> list[Row]:
    with playing(site, PORT) as provider:
        channels = [_channel(site, number) for number in range(CHANNELS)]
        sites.start_types(site, "messages", "scheduler")
        _send(site, channels, size.messages // 4, provider)  # a warm-up, which is not measured
        speeds, costs = [], ""
        for _ in range(size.rounds):
            with measured(site) as spent:
                seconds = _send(site, channels, size.messages, provider)
            speeds.append(size.messages / seconds)
            costs = each({name: cpu for name, cpu in spent.items() if not name.startswith("python")}, size.messages)
            tell(f"{speeds[-1]:.0f}/s, {costs}")
        before = written(site)
        with counted(site) as statements:
            _send(site, channels, size.messages, provider)
        bytes_written = growth("messages", "message", before, written(site), size.messages)
        by_process = statements.by_process()
        print(breakdown("Messages", statements, size.messages), end="\n\n", flush=True)
    return [
        at_least("messages", "sent to a provider", median(speeds), LEAST_PER_SECOND, "/s"),
        Row("messages", "CPU of a message", costs),
        at_most(
            "messages", "SQL statements of a message", by_process["messages"] / size.messages, MOST_STATEMENTS, places=2
        ),
        *bytes_written,
    ]


def _channel(site: Site, number: int) -> str:
    credentials = {"access_token": "token", "app_secret": "secret", "verify_token": "verify"}
    return connect(site.stack, site.workspace, "whatsapp", credentials, {"phone_number_id": str(number)})


def _send(site: Site, channels: list[str], number: int, provider: Provider) -> float:
    """Sends `number` messages. Returns the seconds from the first request to the last outcome.

    Raises BenchError.
    """
    before = provider.count()
    post(site.stack, site.workspace, channels, number // EACH, EACH)
    site.query("ANALYZE messages, conversations, contacts")
    ends = time.monotonic() + PATIENCE_SECONDS
    while provider.count() == before:
        _check(ends)
        time.sleep(0.001)
    began = time.monotonic()
    while provider.count() - before < number:
        _check(ends)
        time.sleep(0.02)
    while site.query("SELECT 1 FROM messages WHERE due_at IS NOT NULL LIMIT 1"):
        _check(ends)
        time.sleep(0.02)
    seconds = time.monotonic() - began
    statuses = dict(site.query("SELECT status, count(*) FROM messages GROUP BY status"))
    if set(statuses) != {"sent"} or provider.count() - before != number:
        raise BenchError(f"Not every message was sent once: {statuses}")
    return seconds


def _check(ends: float) -> None:
    if time.monotonic() > ends:
        raise BenchError(f"The messages were not sent within {PATIENCE_SECONDS} seconds.")
