"""A provider asks for pauses that no calendar has, of every channel of a tenant; others go on sending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.doors.services import service, tenant
from tests.doors.victims import victim
from tests.journeys.audit import rows
from tests.journeys.waiting import wait_until
from tests.providers.base import Reply
from tests.providers.telegram import TOKEN, Bot, Telegram
from tests.stack.posts import connect, post
from tests.stack.stack import Stack

PROCESSES = {"web": 1, "writes": 1, "messages": 1, "scheduler": 1}
PAUSES = (1e9, 1e12, 1e18, "inf", -1e12)
SENT_BY_VICTIM = 30


def measure(tell: Callable[[str], None]) -> None:
    """The victim's act: a message of its own is queued by the API, and has reached the provider."""
    with TemporaryDirectory(prefix="bellhop-provider-", ignore_cleanup_errors=True) as directory:
        provider = Telegram(Path(directory))
        provider.start()
        settings = {"TELEGRAM_API_URL": provider.url, "WEBHOOK_CA_FILE": str(provider.certificates.ca_file)}
        try:
            with service(PROCESSES, settings) as stack:
                _attack(stack, provider, tell)
        finally:
            provider.stop()


def _attack(stack: Stack, provider: Telegram, tell: Callable[[str], None]) -> None:
    attacker, other = tenant(stack, "Attacker"), tenant(stack, "Victim")
    tokens = [f"{number}{TOKEN}" for number in range(1, len(PAUSES) + 2)]
    provider.bots = {token: Bot(token) for token in tokens}
    for token, asked in zip(tokens, PAUSES, strict=False):
        body = {"ok": False, "error_code": 429, "description": "Wait", "parameters": {"retry_after": asked}}
        provider.always(Reply(429, body), f"/bot{token}/sendMessage")
    owners = [attacker] * len(PAUSES) + [other]
    channels = [
        connect(stack, owner.workspace_id, "telegram", {"bot_token": token, "hook_secret": "s"}, {})
        for owner, token in zip(owners, tokens, strict=True)
    ]
    hostile, bot = channels[:-1], provider.bots[tokens[-1]]
    post(stack, attacker.workspace_id, hostile, 10 * len(hostile), 3)
    # The scheduler rings for them.
    wait_until(lambda: len(rows(stack, _PAUSED)) >= len(hostile) - 1, 60, "the provider has asked for its pauses")
    talks = post(stack, other.workspace_id, channels[-1:], SENT_BY_VICTIM, 1)
    caller, waiting = other.caller(), [talk.conversation_id for talk in talks]

    def send() -> None:
        talk = waiting.pop()
        caller.apply("POST", f"conversations/{talk}/messages", {"text": f"Hello, {talk}"})
        wait_until(lambda: any(sent.text == f"Hello, {talk}" for sent in bot.sent), 20, "the message is sent")

    wait_until(lambda: len(bot.sent) >= SENT_BY_VICTIM, 60, "the victim's first messages are sent")
    with victim(send, every_seconds=0.1) as living:
        wait_until(lambda: not waiting or bool(living.errors), 120, "the victim has sent")
        living.stop()
    [(longest, stuck)] = rows(stack, _LEFT)
    tell(f"victim: {living}; longest pause {longest:.0f} s, {stuck} messages left in `sending`")
    assert longest <= 3600
    living.check()


_PAUSED = "SELECT id FROM channels WHERE paused_until IS NOT NULL"
_LEFT = """
    SELECT (SELECT coalesce(max(extract(epoch FROM paused_until - now())), 0)::float FROM channels),
        (SELECT count(*) FROM messages WHERE status = 'sending' AND leased_until > now())
"""
