"""Agents at their inboxes: each opens a conversation or a list, reads it, and opens the next.

`python -m bench.agents '<plan>'` runs them in a process of its own, until a line comes on its standard input. Then it
prints the seconds of each request, by the kind of request, as JSON.
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

# How long an agent reads before the next click, and how often the page's script requests the counts while messages
# come.
READING_SECONDS = (4.0, 10.0)
COUNTS_SECONDS = (1.0, 3.0)
_ROW = re.compile(r'href="(/workspaces/[^"]+/inbox/cnv_[^"?]+)')
# What agents do, and how many of 20 clicks do it. The script requests a conversation without the list.
WORK = {"list": 4, "list, by label": 1, "next page": 2, "conversation": 10, "conversation and list": 1, "search": 2}


@dataclass(frozen=True)
class Plan:
    """The pages to visit, and the cookie of each agent."""

    port: int
    inbox: str
    cookies: Sequence[str]

    def to_json(self) -> str:
        """Returns the argument for `python -m bench.agents`."""
        return json.dumps(asdict(self))


class Agent(threading.Thread):
    """One agent with a connection for clicks and one for counts.

    `asked`: the seconds of each request, by the kind of request.
    """

    def __init__(self, plan: Plan, number: int, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self._plan, self._cookie, self._ended = plan, plan.cookies[number], ended
        self._random = random.Random(number)
        self._connections = [HTTPConnection("127.0.0.1", plan.port, timeout=60) for _ in ("clicks", "counts")]
        self._seen = [""]
        self.asked: dict[str, list[float]] = defaultdict(list)
        self.failed: list[str] = []

    def run(self) -> None:
        counting = threading.Thread(target=self._count, daemon=True)
        counting.start()
        while not self._ended.wait(self._random.uniform(*READING_SECONDS)):
            [what] = self._random.choices(list(WORK), list(WORK.values()))
            self._ask(what, self._address(what))
        counting.join()

    def _count(self) -> None:
        while not self._ended.wait(self._random.uniform(*COUNTS_SECONDS)):
            self._get("counts", f"{self._plan.inbox}/counts", self._connections[1])

    def _address(self, what: str) -> str:
        if what.startswith("conversation") and self._seen[0]:
            return self._random.choice(self._seen) + ("/panes" if what == "conversation" else "")
        if what == "list, by label":
            return f"{self._plan.inbox}?view=all&label={self._random.choice(LABELS)}"
        if what == "search":
            return f"{self._plan.inbox}?q={'+'.join(self._random.sample(WORDS, 2))}"
        return f"{self._plan.inbox}?view={self._random.choice(['mine', 'unassigned', 'all', 'waiting', 'snoozed'])}"

    def _ask(self, what: str, address: str) -> None:
        text = self._get("list" if what == "next page" else what, address, self._connections[0])
        self._seen = _ROW.findall(text) or self._seen
        following = re.search(r'rel="next" href="([^"]+)"', text) if what == "next page" else None
        if following:
            self._get(what, following[1].replace("&amp;", "&"), self._connections[0])

    def _get(self, what: str, address: str, connection: HTTPConnection) -> str:
        began = time.perf_counter()
        connection.request("GET", address, headers={"Cookie": self._cookie, "Accept": "text/html"})
        response = connection.getresponse()
        text = response.read().decode()
        if response.status != 200:
            self.failed.append(f"{address}: {response.status}")
        self.asked[what].append(time.perf_counter() - began)
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
