"""The server of `realtime` against gunicorn's ASGI worker, which streams the same updates to as many listeners.

`bench/asgi.py` has the hub, the reader and the frames of the service, so only the server differs. Each has one process
with uvloop and serves 2,000 listeners in 100 workspaces, in which 200 messages a second are committed. They take turns.
"""

import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import psutil

from bench import live, sites
from bench.costs import measured
from bench.errors import BenchError
from bench.figures import Row, milliseconds, percentile
from bench.live import Writer
from bench.sites import Site
from tests.stack.ports import free_port
from tests.stack.process import Process
from tests.stack.processes import ROOT

COMMAND = (
    "gunicorn --worker-class asgi --asgi-loop uvloop --workers 1 --worker-connections 8192 --log-level warning"
    " --bind 127.0.0.1:{port} bench.asgi:application"
)
OURS, THEIRS = "realtime", "gunicorn's ASGI worker"
PATIENCE_SECONDS = 30
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Size:
    """Listeners, workspaces, messages a second, the seconds of a round, and how many rounds each has."""

    listeners: int = live.LISTENERS
    workspaces: int = live.WORKSPACES
    per_second: int = live.PER_SECOND
    seconds: int = live.SECONDS
    rounds: int = 3


@dataclass(frozen=True)
class Contender:
    """A server: its port, its processes, and how `measured` calls it."""

    name: str
    port: int
    pid: int
    measured_as: str

    @property
    def mebibytes(self) -> float:
        """The memory of the process that serves, without the one that watches over it."""
        leader = psutil.Process(self.pid)
        return max(each.memory_info().rss for each in (leader, *leader.children(recursive=True))) / 2**20


@dataclass(frozen=True)
class Round:
    """What came of one round: how late events were heard, CPU and opening in seconds."""

    late: Sequence[float]
    cpu: float
    mebibytes: float
    opened: float


def run(site: Site, tell: Tell) -> list[Row]:
    return _run(site, Size(), tell)


def quick(site: Site, tell: Tell) -> list[Row]:
    """A small run that shows whether the benchmark works; its figures mean little."""
    return _run(site, Size(listeners=100, workspaces=10, per_second=50, seconds=3, rounds=1), tell)


def _run(site: Site, size: Size, tell: Tell) -> list[Row]:
    live.allow_listeners()
    sites.start_types(site, "web", "realtime")
    workspace_ids = live.make_workspaces(site, size.workspaces)
    cookies = live.make_listeners(site, workspace_ids)
    [pid] = site.stack.processes.pids("realtime")
    with _gunicorn(site) as theirs:
        contenders = [Contender(OURS, site.stack.realtime_port, pid, "realtime"), theirs]
        rounds: dict[str, list[Round]] = {each.name: [] for each in contenders}
        for _ in range(size.rounds):
            for each in contenders:
                made = _round(site, each, cookies, workspace_ids, size)
                rounds[each.name].append(made)
                tell(f"{each.name}: p99 {milliseconds(percentile(made.late, 0.99))}, {made.mebibytes:.0f} MiB")
    return [row for name, made in rounds.items() for row in _described(name, made, size)]


@contextmanager
def _gunicorn(site: Site) -> Iterator[Contender]:
    port = free_port()
    environment = site.stack.environment | {"GUNICORN_CMD_ARGS": ""}
    process = Process("asgi", COMMAND.format(port=port), environment, site.stack.directory / "logs", ROOT)
    process.start()
    try:
        ends = time.monotonic() + PATIENCE_SECONDS
        while not _serves(port):
            if time.monotonic() > ends:
                raise BenchError("\n".join(["gunicorn does not serve:", *process.last_lines()]))
            time.sleep(0.1)
        assert process.pid is not None
        yield Contender(THEIRS, port, process.pid, psutil.Process(process.pid).name().partition("-")[0])
    finally:
        process.ask_to_stop()
        process.finish(time.monotonic() + 5)


def _serves(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return bool(answer.status == 204)
    except OSError:
        return False


def _round(site: Site, contender: Contender, cookies: Sequence[str], workspace_ids: Sequence[str], size: Size) -> Round:
    with live.listening(contender.port, cookies, size.listeners, workspace_ids) as ears:
        writer = Writer(site, workspace_ids)
        with measured(site) as spent:
            writer.write_for(size.seconds, size.per_second)
            found = live.all_heard(ears, writer.written)
        if missing := sum(writer.written[each["workspace_id"]] - each["heard"] for each in found):
            raise BenchError(f"{contender.name}: {missing} events were not heard.")
        late = [seconds for each in found for seconds in each["late"]]
        return Round(late, spent[contender.measured_as], contender.mebibytes, ears.opened_seconds)


def _described(name: str, rounds: Sequence[Round], size: Size) -> list[Row]:
    """The medians over the rounds."""
    p50, p99 = (milliseconds(median(percentile(each.late, share) for each in rounds)) for share in (0.5, 0.99))
    cpu = 100 * median(each.cpu for each in rounds) / size.seconds
    memory = median(each.mebibytes for each in rounds)
    title = f"{name}, {size.listeners:,} listeners, {size.per_second} events/s"
    return [
        Row("servers", title, f"p50 {p50}, p99 {p99}"),
        Row("servers", f"{name}, memory", f"{memory:.0f} MiB"),
        Row("servers", f"{name}, CPU, of one core", f"{cpu:.0f} %"),
        Row("servers", f"{name}, opened within", f"{median(each.opened for each in rounds):.1f} s"),
    ]
