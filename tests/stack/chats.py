"""The persons who write to the demo's Telegram bot, at a Bot API that runs on this machine."""

import json
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError

from tests.providers.base import Call, Reply
from tests.providers.telegram import Bot, Sent, Telegram
from tests.providers.telegram_people import Person

NAMES = (("Ada", "Lovelace"), ("Grace", "Hopper"), ("Mary", "Jackson"), ("Alan", "Turing"))
# As Telegram does, updates that are not taken are sent again.
PAUSE_SECONDS, MOST_TRIES = 0.5, 120


class Chats:
    """The bot's server and what was said. The webhook that is set is kept in the directory.

    Each new person, who is one after each start, is a contact that the bot does not know.
    """

    def __init__(self, directory: Path, certificates: Path, port: int | None = None) -> None:
        self.telegram = _KeptTelegram(certificates, port, directory / "telegram.json")
        self.telegram.on_sent = self._note_answer
        self._said: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self._updates: queue.Queue[Mapping[str, Any]] = queue.Queue()
        self._number = 0
        self.person = self._somebody()

    def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        self.telegram.start()
        threading.Thread(target=self._deliver, daemon=True).start()

    def stop(self) -> None:
        """Stop the server. Safe to call before `start`."""
        self.telegram.stop()

    def write(self, text: str) -> None:
        """The person writes to the bot."""
        self._said[self.person.id].append({"from": "person", "text": text})
        self._updates.put(self.person.writes(text))

    def block(self, is_blocking: bool) -> None:
        """The person stops the bot, or starts it again."""
        blocked = self.telegram.blocked
        blocked.add(self.person.id) if is_blocking else blocked.discard(self.person.id)
        self._updates.put(self.person.blocks() if is_blocking else self.person.unblocks())

    def meet(self) -> None:
        """From now on somebody else sits at the page."""
        self.person = self._somebody()

    def show(self, after: int) -> dict[str, Any]:
        """Who sits at the page, and what was said after the first `after` messages."""
        person = self.person
        return {
            "person": {"id": person.id, "name": f"{person.first_name} {person.last_name}"},
            "is_blocking": person.id in self.telegram.blocked,
            "messages": self._said[person.id][after:],
        }

    def _somebody(self) -> Person:
        first, last = NAMES[self._number % len(NAMES)]
        self._number += 1
        return Person(int(time.time()) * 10 + self._number, first, last)

    def _note_answer(self, bot: Bot, sent: Sent) -> None:
        file = sent.file and sent.file.name
        self._said[sent.chat_id].append({"from": "bot", "text": sent.text or "", "file": file})

    def _deliver(self) -> None:
        while True:
            update = self._updates.get()
            for _ in range(MOST_TRIES):
                if self._is_taken(update):
                    break
                time.sleep(PAUSE_SECONDS)

    def _is_taken(self, update: Mapping[str, Any]) -> bool:
        try:
            return self.telegram.bot.webhook is not None and self.telegram.deliver(update) == 200
        except (URLError, OSError):
            return False


class _KeptTelegram(Telegram):
    """Knows after a restart which webhook the bot has."""

    def __init__(self, certificates: Path, port: int | None, kept: Path) -> None:
        super().__init__(certificates, port)
        self.keeps = False
        self._kept = kept
        if kept.exists():
            self.bot.webhook = json.loads(kept.read_text())

    def reply(self, call: Call) -> Reply:
        """What the Bot API answers."""
        reply = super().reply(call)
        if call.path.endswith("Webhook"):
            self._kept.touch(mode=0o600)  # it has the secret
            self._kept.write_text(json.dumps(self.bot.webhook))
        return reply
