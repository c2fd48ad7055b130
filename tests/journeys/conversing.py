"""Conversations in stories: a shop on three channels, people who write to it, and the account of every message."""

from __future__ import annotations

import hashlib
import json
import time
import urllib.request
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.journeys.audit import rows
from tests.journeys.faults import let_pass
from tests.journeys.shops import NoAnswer, Shop
from tests.journeys.waiting import wait_until
from tests.providers import telegram, whatsapp
from tests.providers.telegram import Telegram
from tests.providers.telegram_people import Person
from tests.providers.whatsapp import WhatsAppServer
from tests.stack.stack import Stack

GIVE_UP_SECONDS = 120
KINDS = ("telegram", "whatsapp", "web_chat")
ORIGIN = "https://shop.example"


@dataclass
class Providers:
    """The played providers of a stack."""

    telegram: Telegram
    whatsapp: WhatsAppServer

    @classmethod
    def beside(cls, certificates: Path, ports: tuple[int, int]) -> Providers:
        """Starts them at these ports with certificates that the stack trusts."""
        made = cls(Telegram(certificates, ports[0]), WhatsAppServer(certificates, ports[1]))
        made.telegram.start()
        made.whatsapp.start()
        return made

    def stop(self) -> None:
        self.telegram.stop()
        self.whatsapp.stop()


@dataclass
class Talker:
    """Somebody who writes on a channel. `conversation_id` is there once the first message has been taken up."""

    number: int
    kind: str
    channel_id: str
    token: str | None = None
    conversation_id: str = ""

    @property
    def phone(self) -> str:
        return f"1555{self.number:07}"

    @property
    def person(self) -> Person:
        return Person(9_000_000 + self.number, f"Talker {self.number}")


@dataclass
class Talks:
    """The conversations of a shop on all three channels. `said` are the texts that people wrote, by talker."""

    stack: Stack
    shop: Shop
    providers: Providers
    channels: dict[str, str]
    talkers: list[Talker]
    said: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    queued: dict[str, str] = field(default_factory=dict)  # identifiers of messages by their text

    def say(self, talker: Talker, text: str) -> None:
        """The person writes; the provider repeats the webhook until it is taken."""
        send = {"telegram": self._telegram, "whatsapp": self._whatsapp, "web_chat": self._web_chat}[talker.kind]
        _until_taken(send(talker, text))
        self.said[talker.number].append(text)

    def answer(self, talker: Talker, text: str) -> None:
        """The shop writes; it repeats the request with its key until it is accepted."""
        caller, key = self.shop.caller(), _key(text)

        def post() -> bool:
            path = f"conversations/{talker.conversation_id}/messages"
            made = caller.call("POST", path, {"text": text}, {"Idempotency-Key": key})
            if made.status == 202:
                self.queued[text] = made.data["resource"]["id"]
            return made.status == 202

        _until_taken(post)

    def begin(self) -> None:
        """Everybody writes once, and their conversations are found."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda talker: self.say(talker, f"in-{talker.number}-0"), self.talkers))
        texts = [f"in-{talker.number}-0" for talker in self.talkers]
        query = "SELECT text, conversation_id FROM messages WHERE workspace_id = %s AND text = ANY(%s)"
        wait_until(
            lambda: len(rows(self.stack, query, self.shop.workspace_id, texts)) == len(texts), 60, "all have begun"
        )
        found = dict(rows(self.stack, query, self.shop.workspace_id, texts))
        for talker in self.talkers:
            talker.conversation_id = found[f"in-{talker.number}-0"]

    def unfinished(self) -> int:
        """Arrivals, writes and outbound messages that have not come to their end."""
        query = """
            SELECT (SELECT count(*) FROM arrivals WHERE workspace_id = %s AND due_at IS NOT NULL)
                + (SELECT count(*) FROM jobs WHERE workspace_id = %s AND status IN ('queued', 'running'))
                + (SELECT count(*) FROM messages WHERE workspace_id = %s AND status IN ('queued', 'sending'))
        """
        return int(rows(self.stack, query, *[self.shop.workspace_id] * 3)[0][0])

    def shown(self, talker: Talker) -> list[str]:
        """The texts that this person has been sent."""
        if talker.kind != "web_chat":
            return self.reached()[str(talker.person.id) if talker.kind == "telegram" else talker.phone]
        headers = {"Origin": ORIGIN, "Authorization": f"Bearer {talker.token}"}
        address = f"{self.stack.base_url}/chat/{talker.channel_id}/messages"
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=20) as response:
            return [message["text"] for message in json.load(response)["messages"] if message["direction"] == "out"]

    def reached(self) -> dict[str, list[str]]:
        """The texts that the providers have taken, in order, by whom they went to."""
        found: dict[str, list[str]] = defaultdict(list)
        for sent in list(self.providers.telegram.bot.sent):
            found[str(sent.chat_id)].append(sent.text or "")
        for message in list(self.providers.whatsapp.messages.values()):
            content = message[message["type"]]
            found[str(message.get("to")).removeprefix("+")].append(content.get("body") or content["caption"])
        return found

    def files(self) -> dict[str, list[bytes]]:
        """The files that the providers have taken, by the text beside them."""
        found: dict[str, list[bytes]] = defaultdict(list)
        for sent in list(self.providers.telegram.bot.sent):
            if sent.file is not None:
                found[sent.text or ""].append(sent.file.content)
        for message in list(self.providers.whatsapp.messages.values()):
            if message["type"] == "document":
                found[message["document"]["caption"]].append(
                    self.providers.whatsapp.media[message["document"]["id"]].content
                )
        return found

    def _telegram(self, talker: Talker, text: str) -> Callable[[], bool]:
        update = talker.person.writes(text)
        return lambda: self.providers.telegram.deliver(update) == 200

    def _whatsapp(self, talker: Talker, text: str) -> Callable[[], bool]:
        who = whatsapp.person(talker.phone, None, f"Talker {talker.number}")
        message = whatsapp.message(f"wamid.in-{_key(text)}", phone=talker.phone, text=text)
        body = whatsapp.webhook(contacts=[who], messages=[message])
        hook = f"{self.stack.base_url}/hooks/whatsapp/{talker.channel_id}"
        return lambda: self.providers.whatsapp.push(hook, body, whatsapp.signed(body))[0] == 200

    def _web_chat(self, talker: Talker, text: str) -> Callable[[], bool]:
        document = {"id": text, "text": text, **({} if talker.token else {"key": f"{talker.number:032}"})}
        headers = {"Content-Type": "application/json", "Origin": ORIGIN}

        def post() -> bool:
            given = {"Authorization": f"Bearer {talker.token}"} if talker.token else {}
            address = f"{self.stack.base_url}/chat/{talker.channel_id}/messages"
            request = urllib.request.Request(address, json.dumps(document).encode(), headers | given)
            with urllib.request.urlopen(request, timeout=20) as response:
                talker.token = json.load(response).get("token") or talker.token
            return True

        return post


def open_channels(stack: Stack, shop: Shop, providers: Providers) -> dict[str, str]:
    """Connects a channel of each kind; returns their identifiers by kind."""
    caller = shop.caller()
    settings = {"phone_number_id": whatsapp.NUMBER}
    bodies: list[dict[str, Any]] = [
        {"kind": "telegram", "name": "Bot", "credentials": {"bot_token": telegram.TOKEN}},
        {"kind": "whatsapp", "name": "Phone", "credentials": whatsapp.CREDENTIALS, "settings": settings},
        {"kind": "web_chat", "name": "Shop", "settings": {"origins": [ORIGIN]}},
    ]
    made = {body["kind"]: caller.apply("POST", "channels", body).data["id"] for body in bodies}
    for channel_id in made.values():
        wait_until(
            lambda channel_id=channel_id: caller.get(f"channels/{channel_id}")["state"] == "connected",
            30,
            f"{channel_id} is connected",
        )
    return made


def begin_talks(stack: Stack, shop: Shop, providers: Providers, each: int) -> Talks:
    """That many people on each channel, who have written once."""
    channels = open_channels(stack, shop, providers)
    talkers = [
        Talker(number * len(KINDS) + place, kind, channels[kind])
        for number in range(each)
        for place, kind in enumerate(KINDS)
    ]
    talks = Talks(stack, shop, providers, channels, talkers)
    talks.begin()
    return talks


def unstored(talks: Talks) -> list[str]:
    """The texts that people wrote and that are not stored yet."""
    said = [text for texts in talks.said.values() for text in texts]
    query = "SELECT text FROM messages WHERE workspace_id = %s AND direction = 'in'"
    return list((Counter(said) - Counter(text for (text,) in rows(*_of(talks, query)))).elements())


def flaws(talks: Talks) -> Iterator[str]:
    """What is wrong: each message must be stored once and in order, and sent once and in order."""
    for talker in talks.talkers:
        query = """
            SELECT text FROM messages WHERE conversation_id = %s AND direction = 'in' ORDER BY created_at, id
        """
        stored = [text for (text,) in rows(talks.stack, query, talker.conversation_id)]
        if stored != talks.said[talker.number]:
            yield f"{talker.kind} {talker.number}: stored {stored} of {talks.said[talker.number]}"
    query = "SELECT text, id, status, failure FROM messages WHERE workspace_id = %s AND direction = 'out'"
    stored_out = {text: (id, status, failure) for text, id, status, failure in rows(*_of(talks, query))}
    if {text: id for text, (id, *_) in stored_out.items()} != talks.queued:
        yield f"{len(stored_out)} messages out are stored, {len(talks.queued)} were accepted"
    yield from _flaws_of_sending(talks, stored_out)


def count_statuses(talks: Talks) -> Counter[str]:
    """How many outbound messages have each status; `unknown` ones by why."""
    query = """
        SELECT status || coalesce(' (' || (failure ->> 'code') || ')', ''), count(*) FROM messages
        WHERE workspace_id = %s AND direction = 'out' GROUP BY 1
    """
    return Counter(dict(rows(*_of(talks, query))))


def _flaws_of_sending(talks: Talks, stored: dict[str, tuple[str, str, Any]]) -> Iterator[str]:
    reached = talks.reached()
    counted = Counter(text for texts in reached.values() for text in texts)
    for whom, texts in reached.items():
        numbers = [int(text.rpartition("-")[2]) for text in texts]
        if numbers != sorted(numbers):
            yield f"{whom} got {numbers}"
    own = {str(talker.number) for talker in talks.talkers if talker.kind == "web_chat"}
    for text, (_, status, failure) in stored.items():
        is_ours = text.split("-")[1] in own
        if status not in ("sent", "unknown") or (is_ours and status != "sent"):
            yield f"{text} is {status}: {failure}"
        elif not is_ours and counted[text] not in ({1} if status == "sent" else {0, 1}):
            yield f"{text} is {status}, and was taken {counted[text]} times"


def _of(talks: Talks, query: str) -> tuple[Stack, str, str]:
    return talks.stack, query, talks.shop.workspace_id


def _until_taken(attempt: Callable[[], bool]) -> None:
    ends = time.monotonic() + GIVE_UP_SECONDS
    while True:
        try:
            if attempt():
                return
        except NoAnswer:  # HTTPError among them
            pass
        assert time.monotonic() < ends, f"Not taken in {GIVE_UP_SECONDS} seconds"
        let_pass(0.1)


def _key(text: str) -> str:
    """A UUIDv4 that is the same for the same text."""
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))


def interleaved(talkers: Sequence[Talker], rounds: int) -> Iterator[tuple[Talker, int]]:
    """Each talker once a round."""
    return ((talker, number) for number in range(1, rounds + 1) for talker in talkers)
