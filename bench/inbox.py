"""The inbox at work: 100 agents with open pages, while people write.

There are 200,000 conversations with 4,000,000 messages. 20 messages a second come in, and 10 are answered. Targets:
every list, count, search and conversation takes at most 100 ms at the median and 200 ms for 99 %. A message is on the
agents' pages within 150 ms for 95 %. The counts are exact afterwards.
"""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from app.lib import ids
from bench import live, sites, talks
from bench.agents import Plan
from bench.errors import BenchError
from bench.figures import Row, at_most, percentile
from bench.inbound import PORT, SETTINGS, Bot
from bench.provider import playing
from bench.sites import Site, Tell
from tests.journeys.shops import Caller
from tests.stack.processes import ROOT

__all__ = ["SETTINGS", "run"]
MOST_MEDIAN_MS, MOST_P99_MS, MOST_LATE_MS = 100, 200, 150
IN_PER_SECOND, OUT_PER_SECOND = 20, 10
COUNTS_SECONDS = 30


@dataclass(frozen=True)
class Size:
    """How many conversations, messages and agents there are, and for how long people write."""

    conversations: int = 200_000
    each: int = 20
    agents: int = 100
    seconds: int = 60


FULL, QUICK = Size(), Size(2_000, 20, 10, 20)


def run(site: Site, tell: Tell, size: Size = FULL) -> list[Row]:
    with playing(site, PORT):
        cookies, member_ids = agents(site, size.agents)
        bot = Bot(site)
        began = time.monotonic()
        talks.insert(site, bot.channel_id, member_ids, size.conversations, size.each)
        tell(f"{size.conversations * size.each:,} messages made in {time.monotonic() - began:.0f} s")
        sites.start(site)
        inbox = f"/workspaces/{site.workspace}/inbox"
        with (
            live.listening(site.stack.realtime_port, cookies, size.agents, [site.workspace]) as ears,
            _working(Plan(site.stack.port, inbox, cookies)) as end,
        ):
            tell("agents at work")
            written = _storm(site, bot, size.seconds)
            heard = live.all_heard(ears, Counter({site.workspace: written}))
            asked = end()
        late = [seconds for each in heard for seconds in each["late"]]
        lost = sum(written - each["heard"] for each in heard)
        return [
            *_asked(asked),
            Row("inbox", "messages written, heard by each agent", f"{written}, lost {lost}"),
            at_most("inbox", "a message on the pages, p95", 1000 * percentile(late, 0.95), MOST_LATE_MS, " ms"),
            at_most("inbox", "counts that are wrong afterwards", _wrong_counts(site), 0, places=0),
        ]


def agents(site: Site, number: int) -> tuple[list[str], list[str]]:
    """Creates agents. Returns their cookies, and their identifiers as members."""
    emails, member_ids = [f"agent{each}@example.com" for each in range(number)], []
    for email in emails:
        account_id, member_id = ids.new("acc"), ids.new("mem")
        site.query(f"INSERT INTO accounts (id, email) VALUES ('{account_id}', '{email}')")
        site.query(
            "INSERT INTO members (id, workspace_id, account_id, role)"
            f" VALUES ('{member_id}', '{site.workspace}', '{account_id}', 'agent')"
        )
        member_ids.append(member_id)
    command = [sys.executable, "-m", "bench.cookies", *emails]
    done = subprocess.run(command, cwd=ROOT, env=site.stack.environment, check=True, capture_output=True, text=True)
    return done.stdout.split(), member_ids


@contextmanager
def _working(plan: Plan) -> Iterator[Callable[[], dict[str, Any]]]:
    """Runs the agents during the block.

    Yields a function that ends their work and returns their requests.
    """
    command = [sys.executable, "-m", "bench.agents", plan.to_json()]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def end() -> dict[str, Any]:
            found: dict[str, Any] = json.loads(process.communicate("\n", timeout=120)[0])
            return found

        try:
            yield end
        finally:
            process.kill()


def _storm(site: Site, bot: Bot, seconds: int) -> int:
    """Has people write for `seconds`, and get answers by the API.

    Returns how many messages they wrote.
    """
    answering = threading.Thread(target=_answer, args=(site, seconds))
    began, written = time.monotonic(), seconds * IN_PER_SECOND
    answering.start()
    for number in range(written):
        due = began + number / IN_PER_SECOND - time.monotonic()
        bot.write((max(0.0, due), max(0.0, due)))
    answering.join()
    return written


def _answer(site: Site, seconds: int) -> None:
    caller = Caller(site.stack.base_url, site.workspace, site.token)
    began = time.monotonic()
    newest: Sequence[Any] = ()
    for number in range(seconds * OUT_PER_SECOND):
        time.sleep(max(0.0, began + number / OUT_PER_SECOND - time.monotonic()))
        if number % OUT_PER_SECOND == 0:
            newest = caller.get("conversations?status=open&limit=50")
        if newest:
            conversation_id = newest[number % len(newest)]["id"]
            caller.call("POST", f"conversations/{conversation_id}/messages", {"text": "Thank you, we look into it."})


def _asked(found: dict[str, Any]) -> list[Row]:
    if found["failed"]:
        raise BenchError(f"{len(found['failed'])} requests failed, such as {found['failed'][0]}")
    rows = []
    for what, seconds in sorted(found["asked"].items()):
        p50, p99 = (1000 * percentile(seconds, share) for share in (0.5, 0.99))
        rows += [
            at_most("inbox", f"{what} ({len(seconds)} times), median", p50, MOST_MEDIAN_MS, " ms"),
            at_most("inbox", f"{what}, p99", p99, MOST_P99_MS, " ms"),
        ]
    return rows


def _wrong_counts(site: Site) -> int:
    """Returns how many counts differ from counting anew."""
    kept, right = talks.kept(site, COUNTS_SECONDS), talks.recounted(site)
    return sum(kept.get(key, 0) != right.get(key, 0) for key in kept.keys() | right.keys())
