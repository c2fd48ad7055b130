"""Anonymous visitors of one address store the largest files as fast as they can, and begin chats: another's reads."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from app.domain.channels import media
from tests.doors.services import service, tenant
from tests.doors.streams import ORIGIN
from tests.doors.victims import victim

Tell = Callable[[str], None]
PROCESSES = {"web": 1, "writes": 1, "messages": 1, "scheduler": 1}
ATTACKERS, SECONDS = 16, 10.0
ATTACKERS_ADDRESS = "127.0.0.9"


def measure(tell: Tell) -> None:
    with service(PROCESSES) as stack:
        attacker, other = tenant(stack, "Attacker").caller(), tenant(stack, "Victim").caller()
        document = {"kind": "web_chat", "name": "Shop", "settings": {"origins": [ORIGIN]}}
        chat = f"{stack.base_url}/chat/{attacker.apply('POST', 'channels', document).data['id']}"
        files = Path(stack.environment["MEDIA_DIR"])
        for act in (store, begin):
            statuses, ends = Counter[int | str](), time.monotonic() + SECONDS
            strangers = [threading.Thread(target=attack, args=(act, chat, ends, statuses)) for _ in range(ATTACKERS)]
            with victim(partial(other.get, "contacts")) as felt:
                for stranger in strangers:
                    stranger.start()
                for stranger in strangers:
                    stranger.join()
            tell(f"{act.__name__}: {dict(statuses)}; reads of another workspace: {felt}")
            felt.check()
        stored = sum(each.stat().st_size for each in files.rglob("*") if each.is_file())
        tell(f"{stored / 1024**2:,.0f} MiB are stored")


def attack(act: Callable[[requests.Session, str], int], chat: str, ends: float, statuses: Counter[int | str]) -> None:
    """Acts again and again, each time as somebody new."""
    with requests.Session() as session:
        session.mount("http://", _From(ATTACKERS_ADDRESS))
        session.headers.update({"Origin": ORIGIN})
        while time.monotonic() < ends:
            outcome: int | str = "hung up"
            with suppress(requests.RequestException):
                outcome = act(session, chat)
            statuses[outcome] += 1


def store(session: requests.Session, chat: str) -> int:
    """Stores a file as a new visitor."""
    headers = {"X-Visitor-Key": secrets.token_hex(16), "X-File-Name": "large"}
    return session.post(f"{chat}/uploads", data=_FILE, headers=headers, timeout=60).status_code


def begin(session: requests.Session, chat: str) -> int:
    """Begins a chat as a new visitor."""
    body = {"id": "first", "text": "Hello", "key": secrets.token_hex(16)}
    return session.post(f"{chat}/messages", json=body, timeout=60).status_code


class _From(HTTPAdapter):
    """Connects from this address."""

    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, source_address=(self._address, 0))


_FILE = os.urandom(media.MOST_BYTES)
