"""`python -m tests.month [--nights 30] [--days 4] [--seconds 20]`: a soak in which the clock jumps each night.

Each day has load, in the middle of which something is restarted. Then all of it is accounted for, figures are taken,
and the clocks of all processes, PostgreSQL's too, jump ahead by some days: partitions are made and dropped, months
closed, keys forgotten. Exits with 1 if a write was lost, or if a figure grew from one month to the next.
"""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from statistics import median

import click

from tests.journeys.audit import rows, unfinished
from tests.journeys.faults import empty_redis, let_pass
from tests.journeys.load import Load
from tests.journeys.runs import make_visitors, publish, start, unfinished_runs
from tests.journeys.shops import Shop, open_shops
from tests.journeys.waiting import wait_until
from tests.month.samples import Sample, Sampler
from tests.stack import leftovers
from tests.stack.clocks import Clock
from tests.stack.receiver import Receiver
from tests.stack.signatures import is_genuine
from tests.stack.stack import Stack

TYPES = ("web", "writes", "automations", "deliveries", "slow-deliveries", "retries", "messages", "scheduler")
SETTINGS = {
    **{"RATE_LIMIT": "0", "RETRY_SCHEDULE": "1,2,5,5,5,5", "WEBHOOK_TIMEOUT_SECONDS": "5"},
    **{"BODY_RETENTION_DAYS": "8", "HISTORY_RETENTION_DAYS": "12"},
}
POSTGRES_SETTINGS = {"log_min_duration_statement": "0", "autovacuum_naptime": "5s"}
SHOPS, VISITORS, RUNS = 2, 20, 40
# The width of the widest partitions: figures repeat after that.
PERIOD_DAYS = 30
MOST_GROWTH, MOST_NOISE, LEAST_MIB = 1.15, 1.5, 1
# Of a period the most of these counts, and the median of those, which a single vacuum or a busy moment moves.
LEVELS, RATES = ("memory MiB", "partitions"), ("claim ms", "read 1000", "dead")
# Time for two passes over usage, which come a minute apart and count for a second each.
HOUR_SECONDS = 70
# What is kept until somebody deletes it.
KEPT = {"contacts", "messages", "conversations", "audit_entries"}
BLOCKS = "▁▂▃▄▅▆▇█"

# Partitions of events are made seven days ahead and dropped behind BODY_RETENTION_DAYS; keys are kept for a day. A
# month is closed when it is counted, and the next one begins.
_HOUSE_IS_KEPT = """
    SELECT min(name) >= to_char(now() - interval '10 days', 'YYYYMMDD')
        AND max(name) >= to_char(now() + interval '6 days', 'YYYYMMDD')
        AND NOT EXISTS (SELECT FROM idempotency_keys WHERE created_at < now() - interval '25 hours')
        AND (SELECT min(month) FROM billing_periods WHERE closed_at IS NULL) >= date_trunc('month', now())::date
    FROM (SELECT substr(relname, 8) AS name FROM pg_class WHERE relname ~ '^events_\\d{8}$') AS pieces
"""


@click.command
@click.option("--nights", default=30)
@click.option("--days", default=4, help="That pass in a night; partitions are made seven days ahead.")
@click.option("--seconds", default=20.0, help="Of load in a day.")
def main(nights: int, days: int, seconds: float) -> None:
    """Run the soak and print a line for each night, then the charts."""
    directory = Path(tempfile.mkdtemp(prefix="month-"))
    click.echo(f"Logs are in {directory / 'logs'}")
    leftovers.mark(directory)
    flaws = Month(directory, nights, days, seconds).run()
    for flaw in flaws:
        click.echo(f"WRONG  {flaw}")
    click.echo(f"{len(flaws)} things are wrong" if flaws else "Nothing was lost.")
    if flaws:
        sys.exit(1)
    shutil.rmtree(directory, ignore_errors=True)


class Month:
    def __init__(self, directory: Path, nights: int, days: int, seconds: float) -> None:
        self._nights, self._days, self._seconds = nights, days, seconds
        self._clock = Clock(directory / "clock")
        self._stack = Stack(directory, dict.fromkeys(TYPES, 1), SETTINGS, postgres_settings=POSTGRES_SETTINGS)
        for environment in (
            self._stack.environment,
            self._stack.processes.environment,
            self._stack.postgres.environment,
        ):
            environment.update(self._clock.environment)
        self._receiver = Receiver(self._stack.certificates.ca_file.parent)
        self._started = 0
        self._accepted = 0

    def run(self) -> list[str]:
        """Returns what is wrong."""
        with self._receiver, self._stack:
            self._shops = open_shops(self._stack, self._receiver, SHOPS)
            self._visitors = {shop: make_visitors(self._stack, shop, VISITORS) for shop in self._shops}
            self._automations = {shop: publish(shop, _steps(self._receiver)) for shop in self._shops}
            return self._pass_nights()

    def _pass_nights(self) -> list[str]:
        samples: list[Sample] = []
        flaws: list[str] = []
        sampler, restarts = Sampler(self._stack), cycle(self._restarts())
        for night in range(1, self._nights + 1):
            what, restart = next(restarts)
            sampler.begin()
            flaws += [f"night {night}: {flaw}" for flaw in self._live_a_day(restart)]
            # Autovacuum has had its turn.
            rows(self._stack, "SELECT pg_stat_force_next_flush()")
            samples.append(sampler.take())
            if night == 1:
                click.echo("night  restarted         " + "".join(f"{name:>12}" for name in samples[0].figures))
            figures = "".join(f"{figure:12,.1f}" for figure in samples[-1].figures.values())
            click.echo(f"{night:5}  {what:18}{figures}")
            self._receiver.received.clear()
            self._clock.move(int(timedelta(days=self._days).total_seconds()))
            self._keep_house()
        self._print(samples)
        per_period = -(-PERIOD_DAYS // self._days)
        if len(samples) < 3 * per_period:
            click.echo(f"Too few nights to tell what grows: that takes {3 * per_period}.")
            return flaws
        grown = _growth(samples[-2 * per_period : -per_period], samples[-per_period:])
        if not grown:
            click.echo("Nothing grew in the last month.")
        return [*flaws, *grown]

    def _restarts(self) -> list[tuple[str, Callable[[], object]]]:
        processes, postgres = self._stack.processes, self._stack.postgres
        ways: list[tuple[str, Callable[[], object]]] = []
        for number, name in enumerate(TYPES):
            code = signal.SIGKILL if number % 2 else signal.SIGTERM
            ways.append((f"{name} {code.name}", lambda name=name, code=code: processes.kill(name, code, tree=False)))
        ways[2:2] = [("PostgreSQL", postgres.restart)]
        ways[5:5] = [("Redis emptied", lambda: empty_redis(self._stack))]
        ways[8:8] = [("PostgreSQL crash", lambda: (postgres.kill(), postgres.start()))]
        return ways

    def _live_a_day(self, restart: Callable[[], object]) -> list[str]:
        load = Load(self._shops, clients=2, pause_seconds=0.1)
        with load:
            let_pass(self._seconds / 3)
            restart()
            for shop in self._shops:
                for visitor in (self._visitors[shop] * RUNS)[:RUNS]:
                    self._started += 1
                    start(shop.caller(), self._automations[shop], visitor, self._started)
            let_pass(self._seconds * 2 / 3)
        self._accepted += len(load.accepted)
        self._stack.processes.wait_ready()
        wait_until(self._has_ended, 120, "all that was begun has ended")
        return [flaw for shop in self._shops for flaw in self._flaws(shop, load)]

    def _has_ended(self) -> bool:
        left = sum(unfinished_runs(self._stack, shop) for shop in self._shops)
        return left + unfinished(self._stack, self._shops) == 0

    def _flaws(self, shop: Shop, load: Load) -> list[str]:
        """What was accepted in the day and has not taken effect, or was not received with a signature that is right."""
        jobs = [write.job_id for write in load.accepted if write.workspace_id == shop.workspace_id]
        sent = rows(
            self._stack,
            """
            SELECT deliveries.id FROM jobs JOIN events ON job_id = jobs.id JOIN deliveries ON event_id = events.id
            WHERE jobs.id = ANY(%s) AND jobs.status = 'succeeded' AND deliveries.status = 'delivered'
            """,
            jobs,
        )
        received = {
            each.delivery_id
            for each in self._receiver.received
            if each.path == shop.hook
            and is_genuine(shop.secret, each.signature, each.body, each.at + self._clock.seconds)
        }
        arrived = {delivery for (delivery,) in sent} & received
        [(runs,)] = rows(
            self._stack,
            "SELECT count(*) FROM runs WHERE workspace_id = %s AND status <> 'completed'",
            shop.workspace_id,
        )
        flaws = [f"{len(jobs) - len(arrived)} of {len(jobs)} writes did not arrive"] * (len(arrived) < len(jobs))
        return flaws + [f"{runs} runs did not succeed"] * (runs > 0)

    def _keep_house(self) -> None:
        """Waits for what the night brings.

        The scheduler looks for expired partitions when it starts, and then once an hour, also for those that were in
        use or not counted. It is restarted instead.
        """
        begins = 0.0

        def is_kept() -> bool:
            nonlocal begins
            if time.monotonic() > begins:
                begins = time.monotonic() + HOUR_SECONDS
                self._stack.processes.kill("scheduler", signal.SIGTERM, tree=False)
            return bool(rows(self._stack, _HOUSE_IS_KEPT)[0][0])

        wait_until(is_kept, 5 * HOUR_SECONDS, "partitions are made and dropped, months closed, and keys forgotten")

    def _print(self, samples: Sequence[Sample]) -> None:
        click.echo(f"\n{len(samples)} nights of {self._days} days, {self._accepted:,} writes, {self._started:,} runs\n")
        series = {name: [sample.figures[name] for sample in samples] for name in samples[0].figures}
        series |= {f"{kind} MiB": [sample.memory[kind] for sample in samples] for kind in sorted(samples[0].memory)}
        largest = sorted(samples[-1].tables, key=samples[-1].size)[:-13:-1]
        series |= {f"{name} MiB": [sample.size(name) for sample in samples] for name in largest}
        for name, values in series.items():
            click.echo(f"{name:24} {_chart(values)}  {min(values):,.1f} to {max(values):,.1f}, last {values[-1]:,.1f}")


def _chart(values: Sequence[float]) -> str:
    most = max(values) or 1
    return "".join(BLOCKS[min(7, int(8 * value / most))] for value in values)


def _growth(before: Sequence[Sample], after: Sequence[Sample]) -> list[str]:
    """What was larger in the last period than in the one before it."""
    flaws = []

    def compare(name: str, then: float, now: float, most: float) -> None:
        if now > then * most:
            flaws.append(f"{name} grew from {then:,.1f} to {now:,.1f}")

    for table in after[-1].tables.keys() - KEPT:
        then, now = (max(each.size(table) for each in some) for some in (before, after))
        compare(f"{table} MiB", max(then, LEAST_MIB), now, MOST_GROWTH)
    for names, of, most in ((LEVELS, max, MOST_GROWTH), (RATES, median, MOST_NOISE)):
        for name in names:
            then, now = (of(each.figures[name] for each in some) for some in (before, after))
            compare(name, then, now, most)
    return flaws


def _steps(receiver: Receiver) -> list[dict[str, object]]:
    return [
        {"id": "pause", "kind": "wait", "seconds": 1},
        {"id": "stage", "kind": "set_field", "field": "stage", "value": "{{ trigger.variables.number }}"},
        {"id": "call", "kind": "http_request", "method": "POST", "address": receiver.url("/calls"), "body": {}},
        {"id": "tell", "kind": "send_message", "text": "Message {{ trigger.variables.number }}"},
    ]


if __name__ == "__main__":
    main()
