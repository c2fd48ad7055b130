"""Inbound messages: how soon a webhook is answered, and its message heard and answered.

People write to a bot, one after the other. Every time is counted from when the webhook is sent. Targets: 99 % of the
webhooks are answered within 50 ms, even while only `web` runs. On an idle system, a member who listens hears the
message within 60 ms at the median and 120 ms for 95 %, and the answer of an automation reaches the provider within 150
ms for 95 %. While 10,000 writes of the same workspace are applied, messages are heard within a second.
"""

import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection

from bench import live, sites
from bench.errors import BenchError
from bench.figures import Row, at_most, milliseconds, percentile
from bench.offers import offer
from bench.provider import Provider, playing
from bench.sites import Site, Tell
from bench.visits import Browser
from tests.journeys.shops import Caller
from tests.providers.telegram import TOKEN
from tests.providers.telegram_people import Person
from tests.stack.ports import free_port
from tests.stack.posts import connect

PORT = free_port()
SETTINGS = {"TELEGRAM_API_URL": f"https://127.0.0.1:{PORT}"}
SECRET = "bench"
PEOPLE = 50  # so many that the rate of a chat delays no answer
WARM = 20
SHORT_PAUSE_SECONDS, IDLE_PAUSE_SECONDS = (0.005, 0.015), (0.1, 0.2)
PATIENCE_SECONDS = 300  # long enough for the writes on a busy machine
WELCOME = {
    "triggers": [{"event": "message.received"}],
    "steps": [{"id": "welcome", "kind": "send_message", "text": "Welcome"}],
}
MOST_ANSWER_MS, MOST_MEDIAN_MS, MOST_P95_MS, MOST_REACTION_MS, MOST_BESIDE_SECONDS = 50, 60, 120, 150, 1


@dataclass(frozen=True)
class Size:
    """How many answers to webhooks are timed, how many messages are sent, and how many writes wait."""

    webhooks: int = 500
    messages: int = 200
    writes: int = 10_000


class Bot:
    """A connected bot to which people write in turn.

    `sent_at`: Unix times, by the person's identifier.
    """

    def __init__(self, site: Site) -> None:
        self.channel_id = connect(
            site.stack, site.workspace, "telegram", {"bot_token": TOKEN, "hook_secret": SECRET}, {"reopen": True}
        )
        self.sent_at: dict[str, list[float]] = defaultdict(list)
        self._path = f"/hooks/telegram/{self.channel_id}"
        self._connection = HTTPConnection("127.0.0.1", site.stack.port, timeout=30)
        self._people = [Person(7_000_000 + number) for number in range(PEOPLE)]
        self._written = 0

    def write(self, pause: tuple[float, float]) -> float:
        """Has somebody write after a pause. Returns the seconds until the webhook was answered.

        Raises BenchError.
        """
        time.sleep(random.uniform(*pause))
        person = self._people[self._written % PEOPLE]
        self._written += 1
        began = time.time()
        body = json.dumps(person.writes(f"{self._written} {began:.6f}"))  # the listeners parse this text
        headers = {"Content-Type": "application/json", "X-Telegram-Bot-Api-Secret-Token": SECRET}
        self._connection.request("POST", self._path, body, headers)
        response = self._connection.getresponse()
        said = response.read()
        seconds = time.time() - began
        if response.status != 200:
            raise BenchError(f"The webhook was not taken: {response.status} {said.decode(errors='replace')}")
        self.sent_at[str(person.id)].append(began)
        return seconds


FULL, QUICK = Size(), Size(webhooks=60, messages=20, writes=500)


def run(site: Site, tell: Tell, size: Size = FULL) -> list[Row]:
    with playing(site, PORT) as provider:
        live.make_workspaces(site, 1)
        sites.start_types(site, "web")
        bot = Bot(site)
        rows = _answered(site, bot, size.webhooks, "workers stopped")
        tell("without workers done")
        sites.start(site)
        rows += _answered(site, bot, size.webhooks, "workers running")
        tell("with workers done")
        cookie = Browser(site, live.EMAIL).cookie
        rows += _heard(site, bot, cookie, size.messages)
        tell("live done")
        rows += _heard_beside_writes(site, bot, cookie, size.writes)
        tell("beside writes done")
        return rows + _reacted(site, bot, provider, size.messages)


def _answered(site: Site, bot: Bot, number: int, how: str) -> list[Row]:
    for _ in range(WARM):
        bot.write(SHORT_PAUSE_SECONDS)
    times = [bot.write(SHORT_PAUSE_SECONDS) for _ in range(number)]
    if site.stack.processes.pids("messages"):
        _wait(lambda: not site.query("SELECT 1 FROM arrivals WHERE due_at IS NOT NULL LIMIT 1"), "were not taken up")
    p50, p95 = (milliseconds(percentile(times, share)) for share in (0.5, 0.95))
    return [
        Row("inbound", f"webhook answered, {how}", f"p50 {p50}, p95 {p95}"),
        at_most("inbound", f"webhook answered, {how}, p99", 1000 * percentile(times, 0.99), MOST_ANSWER_MS, " ms"),
    ]


def _heard(site: Site, bot: Bot, cookie: str, number: int) -> list[Row]:
    with live.listening(site.stack.realtime_port, [cookie], 1, [site.workspace]) as ears:
        for _ in range(number):
            bot.write(IDLE_PAUSE_SECONDS)
        late = _late(site, ears, number)
    return [
        at_most("inbound", "idle, heard live, median", 1000 * percentile(late, 0.5), MOST_MEDIAN_MS, " ms"),
        at_most("inbound", "idle, heard live, p95", 1000 * percentile(late, 0.95), MOST_P95_MS, " ms"),
    ]


def _heard_beside_writes(site: Site, bot: Bot, cookie: str, number: int) -> list[Row]:
    """Stops `writes`, lets writes wait, then starts it; people write until all writes are applied."""
    site.stack.processes.stop("writes.1")
    queued = 0
    while queued < number:
        queued += len(offer(site.plan(1.0)).at)
    with live.listening(site.stack.realtime_port, [cookie], 1, [site.workspace]) as ears:
        began, written = time.monotonic(), 0
        site.stack.processes.start("writes.1")
        while site.query("SELECT 1 FROM jobs WHERE due_at IS NOT NULL LIMIT 1"):
            if time.monotonic() - began > PATIENCE_SECONDS:
                raise BenchError(f"{queued} writes were not applied in {PATIENCE_SECONDS} seconds.")
            bot.write(SHORT_PAUSE_SECONDS)
            written += 1
        seconds = time.monotonic() - began
        late = _late(site, ears, written)
    p50, p99 = (milliseconds(percentile(late, share)) for share in (0.5, 0.99))
    what = f"heard live beside {queued:,} writes"
    return [
        Row("inbound", what, f"p50 {p50}, p99 {p99} of {written:,} in {seconds:.0f} s"),
        at_most("inbound", f"{what}, worst", max(late), MOST_BESIDE_SECONDS, " s", places=2),
    ]


def _late(site: Site, ears: live.Ears, number: int) -> list[float]:
    [heard] = live.all_heard(ears, Counter({site.workspace: number}))
    if heard["heard"] != number or heard["doubled"]:
        raise BenchError(f"{number} messages were written, {heard['heard']} heard, {heard['doubled']} of them again.")
    late: list[float] = heard["late"]
    return late


def _reacted(site: Site, bot: Bot, provider: Provider, number: int) -> list[Row]:
    caller = Caller(site.stack.base_url, site.workspace, site.token)
    made = caller.apply("POST", "automations", {"name": "Welcome", "definition": WELCOME, "reentry": "after_finish"})
    caller.apply("POST", f"automations/{made.data['id']}/publish")
    for _ in range(WARM):
        bot.write(IDLE_PAUSE_SECONDS)
    _wait(lambda: provider.count() == WARM, "were not answered")
    bot.sent_at.clear()
    for _ in range(number):
        bot.write(IDLE_PAUSE_SECONDS)
    _wait(lambda: provider.count() == WARM + number, "were not answered")
    answered_at: dict[str, list[float]] = defaultdict(list)
    for taken in provider.taken()[WARM:]:
        answered_at[taken.to].append(taken.at)
    times = [
        answered - sent
        for person, those in bot.sent_at.items()
        for sent, answered in zip(those, answered_at[person], strict=True)
    ]
    return [
        Row("inbound", "idle, automation's answer at the provider, median", milliseconds(percentile(times, 0.5))),
        at_most(
            "inbound",
            "idle, automation's answer at the provider, p95",
            1000 * percentile(times, 0.95),
            MOST_REACTION_MS,
            " ms",
        ),
    ]


def _wait(condition: Callable[[], bool], otherwise: str) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > ends:
            raise BenchError(f"Messages {otherwise} in {PATIENCE_SECONDS} seconds.")
        time.sleep(0.05)
