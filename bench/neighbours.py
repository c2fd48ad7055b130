"""A neighbour of the measured workspace: visitors write to its web chat, and get answers."""

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from threading import Event

from bench.errors import BenchError
from bench.sites import Site
from tests.journeys.shops import Caller
from tests.listening import Ear

ORIGIN = "https://shop.example"
# A visitor may send 120 requests a minute.
VISITORS, PAUSE_SECONDS = 5, 0.2
PATIENCE_SECONDS = 30
# Each question gets a different answer, because the service does not send one text more than 20 times.
ANSWERING = {
    "triggers": [{"event": "message.received"}],
    "steps": [{"id": "answer", "kind": "send_message", "text": "About: {{ trigger.event.data.message.text }}"}],
}


class Visitor:
    """A visitor of a web chat, who listens to its live stream."""

    def __init__(self, site: Site, channel_id: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", site.stack.port, timeout=PATIENCE_SECONDS)
        self._path = f"/chat/{channel_id}/messages"
        self._headers = {"Origin": ORIGIN, "Content-Type": "application/json"}
        self._headers["Authorization"] = f"Bearer {self._write('Hello', key=secrets.token_hex(16))['token']}"
        self._ear = Ear(site.stack.realtime_port, "/live/chat", self._headers).open().until_placed()

    def ask(self, number: int) -> float:
        """Asks a question. Returns the milliseconds until the answer is on the stream.

        Raises BenchError if there is no answer.
        """
        began = time.monotonic()
        self._write(f"Question {number}")
        while not any(each.data.get("text") == f"About: Question {number}" for each in self._ear.listen().heard):
            if self._ear.is_over or time.monotonic() - began > PATIENCE_SECONDS:
                raise BenchError(f"A visitor got no answer within {PATIENCE_SECONDS} seconds.")
        self._ear.heard.clear()
        return 1000 * (time.monotonic() - began)

    def _write(self, text: str, **fields: str) -> dict[str, str]:
        body = {"id": secrets.token_hex(8), "text": text, **fields}
        self._connection.request("POST", self._path, json.dumps(body), self._headers)
        response = self._connection.getresponse()
        said = response.read()
        if response.status != 202:
            raise BenchError(f"The chat did not take a message: {response.status} {said.decode(errors='replace')}")
        found: dict[str, str] = json.loads(said)
        return found


def visitors(site: Site) -> list[Visitor]:
    """Creates visitors of a new workspace, and has each of them answered once."""
    made = site.stack.command("workspace", "create", "Neighbour")
    caller = Caller(site.stack.base_url, made["workspace"]["id"], made["token"])
    document = {"kind": "web_chat", "name": "Shop", "settings": {"origins": [ORIGIN]}}
    channel_id = caller.apply("POST", "channels", document).data["id"]
    automation = {"name": "Answers", "definition": ANSWERING, "reentry": "every"}
    automation_id = caller.apply("POST", "automations", automation).data["id"]
    caller.apply("POST", f"automations/{automation_id}/publish")
    found = [Visitor(site, channel_id) for _ in range(VISITORS)]
    for place, visitor in enumerate(found, start=1):
        visitor.ask(-place)
    return found


@contextmanager
def asking(those: Sequence[Visitor]) -> Iterator[list[float]]:
    """Has the visitors ask in turn during the block.

    Yields a list that gets the milliseconds of each answer at the end of the block.
    """
    times: list[float] = []
    over = Event()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_ask, those, over)
        try:
            yield times
        finally:
            over.set()
        times += asked.result()


def _ask(those: Sequence[Visitor], over: Event) -> list[float]:
    times = []
    for number in count():
        times.append(those[number % len(those)].ask(number))
        if over.wait(PAUSE_SECONDS):
            break
    return times
