"""Bots on a played Telegram: people write to them, and what they have sent is counted there."""

from __future__ import annotations

from collections import defaultdict
from itertools import count

from tests.browser.services import Service, Workspace
from tests.journeys.waiting import wait_until
from tests.providers.telegram import Bot, Telegram
from tests.providers.telegram_people import Person

_tokens = (f"{number}:AAHn-hand-made-for-tests-0123456789" for number in count(200_000_000))


class TalkingBot:
    """A connected channel of the workspace, whose bot nobody else has."""

    def __init__(self, service: Service, workspace: Workspace, telegram: Telegram) -> None:
        self.service = service
        self.telegram = telegram
        token = next(_tokens)
        self.bot = telegram.bots[token] = Bot(token)
        caller = workspace.caller()
        wanted = {"kind": "telegram", "name": "Bot", "credentials": {"bot_token": token}}
        self.id = caller.apply("POST", "channels", wanted).data["id"]
        wait_until(lambda: caller.get(f"channels/{self.id}")["state"] == "connected", 60, "the bot is connected")

    def hear(self, person: Person, text: str) -> None:
        """The person writes, and it is stored."""
        assert self.telegram.deliver(person.writes(text), self.bot) == 200
        stored = "SELECT 1 FROM messages WHERE channel_id = %s AND direction = 'in' AND text = %s"
        wait_until(lambda: self.service.query(stored, self.id, text), 60, f"{text} is stored")

    def said(self) -> dict[int, list[str]]:
        """What the bot has sent, in order, by the person who got it."""
        found: dict[int, list[str]] = defaultdict(list)
        for sent in list(self.bot.sent):
            found[sent.chat_id].append(sent.text or "")
        return dict(found)
