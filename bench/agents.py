"""Agents at their inboxes, in a process of their own: each looks at a page, reads, and looks at the next.

`python -m bench.agents '<plan>'` runs until a line comes on its standard input, and prints the seconds of each request
by what was asked for, as JSON.
"""

import json
import random
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from http.client import HTTPConnection

from bench.talks import LABELS, WORDS

# How long an agent reads before the next click.
READING_SECONDS = (2.0, 6.0)
_ROW = re.compile(r'href="(/workspaces/[^"]+/inbox/cnv_[^"?]+)')
# What agents do, and how often, of 20 clicks.
WORK = {"list": 4, "list, by label": 1, "next page": 2, "conversation": 9, "counts": 2, "search": 2}


@dataclass(frozen=True)
class Plan:
    """Where the pages are, and the cookie of each agent."""

    port: int
    inbox: str
    cookies: Sequence[str]

    def to_json(self) -> str:
        """The argument for `python -m bench.agents`."""
        return json.dumps(asdict(self))


class Agent(threading.Thread):
    """One agent with one connection. `asked` has the seconds of each request, by what was asked for."""

    def __init__(self, plan: Plan, number: int, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self._plan, self._cookie, self._ended = plan, plan.cookies[number], ended
        self._random = random.Random(number)
        self._connection = HTTPConnection("127.0.0.1", plan.port, timeout=60)
        self._seen = [""]
        self.asked: dict[str, list[float]] = defaultdict(list)
        self.failed: list[str] = []

    def run(self) -> None:
        while not self._ended.wait(self._random.uniform(*READING_SECONDS)):
            [what] = self._random.choices(list(WORK), list(WORK.values()))
            self._ask(what, self._address(what))

    def _address(self, what: str) -> str:
        if what == "conversation" and self._seen[0]:
            return self._random.choice(self._seen)
        if what == "list, by label":
            return f"{self._plan.inbox}?view=all&label={self._random.choice(LABELS)}"
        if what == "search":
            return f"{self._plan.inbox}?q={'+'.join(self._random.sample(WORDS, 2))}"
        if what == "counts":
            return f"{self._plan.inbox}/counts"
        return f"{self._plan.inbox}?view={self._random.choice(['mine', 'unassigned', 'all', 'waiting', 'snoozed'])}"

    def _ask(self, what: str, address: str) -> str:
        began = time.perf_counter()
        self._connection.request("GET", address, headers={"Cookie": self._cookie, "Accept": "text/html"})
        response = self._connection.getresponse()
        text = response.read().decode()
        if response.status != 200:
            self.failed.append(f"{address}: {response.status}")
        elif what == "next page":
            following = re.search(r'rel="next" href="([^"]+)"', text)
            return self._ask("list", following[1].replace("&amp;", "&")) if following else text
        self.asked[what].append(time.perf_counter() - began)
        self._seen = _ROW.findall(text) or self._seen
        return text


def main(plan: Plan) -> None:
    ended = threading.Event()
    agents = [Agent(plan, number, ended) for number in range(len(plan.cookies))]
    for agent in agents:
        agent.start()
    sys.stdin.readline()
    ended.set()
    asked: dict[str, list[float]] = defaultdict(list)
    for agent in agents:
        agent.join()
        for what, seconds in agent.asked.items():
            asked[what] += seconds
    print(json.dumps({"asked": asked, "failed": [each for agent in agents for each in agent.failed]}))


if __name__ == "__main__":
    main(Plan(**json.loads(sys.argv[1])))
