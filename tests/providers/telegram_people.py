"""People who write to Telegram's bots: the updates that follow."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.providers.telegram import TOKEN, Bot, Sent

# Of messages and updates; a process that is started again repeats none.
_numbers = itertools.count(int(time.time() * 1000))


@dataclass(frozen=True)
class Person:
    """Somebody who writes to bots; every verb returns an update."""

    id: int = 7_000_001
    first_name: str = "Ada"
    last_name: str | None = "Lovelace"
    language_code: str | None = "en"

    @property
    def user(self) -> dict[str, Any]:
        facts = {"last_name": self.last_name, "language_code": self.language_code}
        given = {name: fact for name, fact in facts.items() if fact is not None}
        return {"id": self.id, "is_bot": False, "first_name": self.first_name} | given

    @property
    def chat(self) -> dict[str, Any]:
        return {"id": self.id, "type": "private", "first_name": self.first_name}

    def called(self, name: str) -> Person:
        """The same account under another first name."""
        return replace(self, first_name=name)

    def writes(self, text: str, **members: Any) -> dict[str, Any]:
        """A message of text."""
        return self.sends(text=text, **members)

    def sends(self, **members: Any) -> dict[str, Any]:
        """Any message, such as one with a file."""
        head = {"message_id": next(_numbers), "from": self.user, "chat": self.chat, "date": int(time.time())}
        return self._update("message", head | members)

    def edits(self, update: Mapping[str, Any], text: str) -> dict[str, Any]:
        """The message of an earlier update with another text."""
        return self._update("edited_message", update["message"] | {"text": text, "edit_date": int(time.time())})

    def presses(self, sent: Sent, button_id: str, *, is_old: bool = False) -> dict[str, Any]:
        """A button of a bot's message is pressed; Telegram no longer shows one that `is_old`."""
        head: dict[str, Any] = {"message_id": sent.message_id, "chat": self.chat}
        message = {"date": int(sent.at), "from": Bot(TOKEN).user, "text": sent.text, "reply_markup": sent.keyboard}
        query = {"id": str(next(_numbers)), "from": self.user, "chat_instance": "1", "data": button_id}
        return self._update("callback_query", query | {"message": head | ({"date": 0} if is_old else message)})

    def blocks(self) -> dict[str, Any]:
        """The person has stopped the bot."""
        return self._changes("member", "kicked")

    def unblocks(self) -> dict[str, Any]:
        """The person has started the bot again."""
        return self._changes("kicked", "member")

    def _changes(self, old: str, new: str) -> dict[str, Any]:
        user = Bot(TOKEN).user
        members = [
            {"status": status, "user": user} | ({"until_date": 0} if status == "kicked" else {})
            for status in (old, new)
        ]
        change = {"chat": self.chat, "from": self.user, "date": int(time.time())}
        return self._update("my_chat_member", change | {"old_chat_member": members[0], "new_chat_member": members[1]})

    def _update(self, member: str, content: Mapping[str, Any]) -> dict[str, Any]:
        return {"update_id": next(_numbers), member: content}
