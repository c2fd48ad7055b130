"""Live updates: from commit to listener, when idle and with 2,000 listeners.

After a kill, all listeners reconnect at once.
"""

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psutil
import psycopg2

from app.lib import ids
from bench import sites
from bench.costs import measured
from bench.errors import BenchError
from bench.figures import Row, at_most, milliseconds, percentile
from bench.sites import Site, Tell
from bench.visits import PASSWORD
from tests.stack.processes import ROOT

LISTENERS, WORKSPACES, PER_SECOND, SECONDS = 2_000, 100, 200, 15
QUICK = 100  # the listeners of a small run
# For a single workspace, where every event goes to all listeners.
PER_SECOND_TO_ALL = 10
IDLE_WRITES, IDLE_PAUSE_SECONDS, IDLE_SECONDS = 100, 0.07, 10
EMAIL = "bench@example.com"
# So many that no member has more streams than one may have.
ACCOUNTS = 200
MOST_SECONDS = 60


class Ears:
    """The process that runs the listeners."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.opened_seconds = float(self._read()["seconds"])

    def report(self) -> list[dict[str, Any]]:
        """Returns how much each listener has heard in all, and the delays since the last report."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: list[dict[str, Any]] = self._read()
        return found

    def _read(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise BenchError("The listeners ended.")
        return json.loads(line)


class Writer:
    """Commits messages, one at a time, to workspaces in turn."""

    def __init__(self, site: Site, workspace_ids: Sequence[str]) -> None:
        self._connection = psycopg2.connect(site.stack.postgres.url)
        self._connection.autocommit = True
        self._workspace_ids = workspace_ids
        self.written: Counter[str] = Counter()

    def write(self) -> None:
        number = self.written.total()
        workspace_id = self._workspace_ids[number % len(self._workspace_ids)]
        self._connection.cursor().execute(
            "INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, text, status, author)"
            " VALUES (%s, %s, 'cnv_bench', 'con_bench', 'in', %s, 'received', '{}')",
            (ids.new("msg"), workspace_id, f"{number} {time.time():.6f}"),
        )
        self.written[workspace_id] += 1

    def write_for(self, seconds: float, per_second: int) -> None:
        began = time.time()
        for number in range(int(seconds * per_second)):
            time.sleep(max(0.0, began + number / per_second - time.time()))
            self.write()


def run(site: Site, tell: Tell, count: int = LISTENERS) -> list[Row]:
    allow_listeners()
    sites.start_types(site, "web", "realtime")
    workspace_ids = make_workspaces(site, WORKSPACES)
    cookies = make_listeners(site, workspace_ids)
    rows = _idle(site, cookies[:1], workspace_ids[:1])
    tell("idle done")
    rows += _many(site, cookies, workspace_ids, count, PER_SECOND, tell)
    rows += _many(site, cookies, workspace_ids[:1], count, PER_SECOND_TO_ALL, tell)
    return rows


def allow_listeners() -> None:
    """Lets processes that are started from now on open as many files as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def make_workspaces(site: Site, number: int) -> list[str]:
    """Returns the site's workspace and new ones. The member `EMAIL` can listen to all of them."""
    site.stack.command("member", "create", site.workspace, EMAIL, "--role", "owner", input=f"{PASSWORD}\n")
    made = [ids.new("ws") for _ in range(number - 1)]
    for workspace_id in made:
        site.query(f"INSERT INTO workspaces (id, name) VALUES ('{workspace_id}', 'Bench')")
        site.query(
            f"INSERT INTO members (id, workspace_id, account_id, role)"
            f" SELECT '{ids.new('mem')}', '{workspace_id}', id, 'owner' FROM accounts WHERE email = '{EMAIL}'"
        )
    return [site.workspace, *made]


def make_listeners(site: Site, workspace_ids: Sequence[str]) -> list[str]:
    """Creates accounts, each a member of the first workspace and another one. Returns their cookies."""
    emails = [f"listener{number}@example.com" for number in range(ACCOUNTS)]
    for number, email in enumerate(emails):
        account_id = ids.new("acc")
        site.query(f"INSERT INTO accounts (id, email) VALUES ('{account_id}', '{email}')")
        for workspace_id in {workspace_ids[0], workspace_ids[number % len(workspace_ids)]}:
            site.query(
                "INSERT INTO members (id, workspace_id, account_id, role)"
                f" VALUES ('{ids.new('mem')}', '{workspace_id}', '{account_id}', 'owner')"
            )
    command = [sys.executable, "-m", "bench.cookies", *emails]
    done = subprocess.run(command, cwd=ROOT, env=site.stack.environment, check=True, capture_output=True, text=True)
    return done.stdout.split()


def _idle(site: Site, cookies: Sequence[str], workspace_ids: Sequence[str]) -> list[Row]:
    with listening(site.stack.realtime_port, cookies, 1, workspace_ids) as ears:
        with measured(site) as spent:
            time.sleep(IDLE_SECONDS)
        writer = Writer(site, workspace_ids)
        for _ in range(IDLE_WRITES):
            writer.write()
            time.sleep(IDLE_PAUSE_SECONDS)
        [heard] = all_heard(ears, writer.written)
    looking = sum(spent[name] for name in ("realtime", "postgres"))
    return [
        Row("live", "idle, looking, with PostgreSQL, of one core", f"{100 * looking / IDLE_SECONDS:.1f} %"),
        at_most("live", "idle, commit to listener, median", 1000 * percentile(heard["late"], 0.5), 60, " ms"),
        at_most("live", "idle, commit to listener, p95", 1000 * percentile(heard["late"], 0.95), 120, " ms"),
    ]


def _many(
    site: Site, cookies: Sequence[str], workspace_ids: Sequence[str], count: int, per_second: int, tell: Tell
) -> list[Row]:
    name = f"{len(workspace_ids)} workspaces: " if len(workspace_ids) > 1 else "one workspace: "
    with listening(site.stack.realtime_port, cookies, count, workspace_ids) as ears:
        writer = Writer(site, workspace_ids)
        with measured(site) as spent:
            writer.write_for(SECONDS, per_second)
            late = [each for heard in all_heard(ears, writer.written) for each in heard["late"]]
        tell(f"{name}{count:,} listeners heard {len(late):,} events")
        memory = sum(psutil.Process(pid).memory_info().rss for pid in site.stack.processes.pids("realtime"))
        rows = [
            Row("live", f"{name}{count:,} listeners, opened within", f"{ears.opened_seconds:.1f} s"),
            Row("live", f"{name}memory", f"{memory / 2**20:.0f} MiB"),
            Row("live", f"{name}{per_second} events/s, median", milliseconds(percentile(late, 0.5))),
            at_most("live", f"{name}{per_second} events/s, p99", 1000 * percentile(late, 0.99), 500, " ms"),
            Row("live", f"{name}CPU of realtime, of one core", f"{100 * spent['realtime'] / SECONDS:.0f} %"),
        ]
        began = time.time()
        site.stack.processes.kill("realtime")
        writer.write_for(5, per_second)
        heard = all_heard(ears, writer.written)
        lost = sum(writer.written[each["workspace_id"]] - each["heard"] for each in heard)
        rows += [
            Row("live", f"{name}after kill -9, all have everything within", f"{time.time() - began:.1f} s"),
            at_most("live", f"{name}lost, of all listeners", lost, 0, places=0),
            at_most("live", f"{name}doubled", sum(each["doubled"] + each["resets"] for each in heard), 0, places=0),
        ]
    return rows


def all_heard(ears: Ears, written: Mapping[str, int]) -> list[dict[str, Any]]:
    """Returns what the listeners heard, once they heard everything or a minute has passed."""
    ends, late = time.time() + MOST_SECONDS, None
    while True:
        found = ears.report()
        late = [[*before, *each["late"]] for before, each in zip(late or [[]] * len(found), found, strict=True)]
        is_whole = all(each["heard"] >= written[each["workspace_id"]] for each in found)
        if is_whole or time.time() > ends:
            return [{**each, "late": those} for each, those in zip(found, late, strict=True)]
        time.sleep(0.5)


@contextmanager
def listening(port: int, cookies: Sequence[str], count: int, workspace_ids: Sequence[str]) -> Iterator[Ears]:
    """Runs `count` listeners at the port, spread over the cookies' members and the workspaces."""
    command = [sys.executable, "-m", "bench.listeners", str(port), "\n".join(cookies), str(count)]
    with subprocess.Popen(
        [*command, *workspace_ids], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Ears(process)
        finally:
            process.kill()
