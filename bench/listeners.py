"""Listeners of live updates, in a process of their own: what each heard, and how late.

`python -m bench.listeners PORT COOKIES COUNT WORKSPACE…` spreads COUNT listeners over the cookies (one per line), the
workspaces, and addresses of this machine. It prints a line once all have received a place. For each line on its
standard input, it prints a report of what each listener heard, as JSON.
"""

import asyncio
import json
import re
import sys
import time
from collections import Counter

import uvloop

# The text of a message: its number, and when it was committed.
TEXT = re.compile(rb'"text":"(\d+) ([\d.]+)"')
PLACE = re.compile(rb"^id: (.+)$", re.MULTILINE)
RETRY_SECONDS = 0.2
ADDRESSES = 20  # each may have up to 1,000 streams


class Listener(asyncio.Protocol):
    """One stream. After it ends, it is opened again and resumes after what was heard last."""

    def __init__(self, port: int, cookie: str, workspace_id: str, address: str) -> None:
        self.port, self.cookie, self.workspace_id, self.address = port, cookie, workspace_id, address
        self.place, self.left = b"", b""
        self.heard: Counter[int] = Counter()
        self.late: list[float] = []
        self.resets = 0

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                await loop.create_connection(lambda: self, "127.0.0.1", self.port, local_addr=(self.address, 0))
                return
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.left = b""
        last = b"Last-Event-ID: %s\r\n" % self.place if self.place else b""
        lines = [
            f"GET /live/workspace?workspace={self.workspace_id} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"Cookie: {self.cookie}\r\n",
        ]
        transport.write("\r\n".join(lines).encode() + last + b"\r\n")  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        now = time.time()
        whole, _, self.left = (self.left + data).rpartition(b"\n\n")
        if not whole:
            return
        for number, committed in TEXT.findall(whole):
            self.heard[int(number)] += 1
            self.late.append(now - float(committed))
        if places := PLACE.findall(whole):
            self.place = places[-1]
        self.resets += whole.count(b"event: reset")

    def connection_lost(self, exc: Exception | None) -> None:
        loop = asyncio.get_running_loop()
        # The loop holds the task until it is done.
        loop.call_later(RETRY_SECONDS, lambda: loop.create_task(self.open()))


async def main(port: int, cookies: list[str], count: int, workspace_ids: list[str]) -> None:
    listeners = [
        Listener(
            port,
            cookies[number % len(cookies)],
            workspace_ids[number % len(workspace_ids)],
            f"127.0.0.{1 + number % ADDRESSES}",
        )
        for number in range(count)
    ]
    began = time.time()
    for first in range(0, count, 100):
        await asyncio.gather(*(listener.open() for listener in listeners[first : first + 100]))
    while not all(listener.place for listener in listeners):
        await asyncio.sleep(0.05)
    print(json.dumps({"seconds": time.time() - began}), flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps([report(listener) for listener in listeners]), flush=True)


def report(listener: Listener) -> dict[str, object]:
    said = {
        "workspace_id": listener.workspace_id,
        "heard": len(listener.heard),
        "doubled": sum(times - 1 for times in listener.heard.values()),
        "resets": listener.resets,
        "late": listener.late,
    }
    listener.late = []
    return said


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2].split("\n"), int(sys.argv[3]), sys.argv[4:]))
