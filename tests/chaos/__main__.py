"""`python -m tests.chaos [--seconds 600] [--seed N] [--drill-only]`: exits with 1 and the evidence of what is wrong."""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.accounts import Account
from tests.chaos.restores import drill
from tests.chaos.tempers import TEMPERS, Tempers, good, refusing
from tests.chaos.troubles import Troubles
from tests.chaos.walkers import Walkers
from tests.chaos.wishes import Wishes
from tests.journeys.audit import rows, unfinished
from tests.journeys.faults import let_pass
from tests.journeys.load import Load
from tests.journeys.shops import Shop, open_shop, open_shops
from tests.journeys.waiting import wait_until
from tests.stack import leftovers
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

PROCESSES = {
    **{"web": 1, "writes": 3, "automations": 2, "deliveries": 2, "slow-deliveries": 1, "retries": 2},
    **{"scheduler": 2, "realtime": 1},
}
TIMEOUT_SECONDS = 3
LEASE_SECONDS = TIMEOUT_SECONDS + 5
SETTINGS = {
    "RATE_LIMIT": "0",
    "RETRY_SCHEDULE": "1,1,2,2,3,3,5,5,5,5",
    "STOP_AFTER_FAILURES": "50",
    "PROBE_PAUSE_SECONDS": "1",
    "WEBHOOK_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
}
MOST_SECONDS_TO_SETTLE = 300
MOST_ROUNDS = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--drill-only", action="store_true", help="only lose and restore the database")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    what = "the drill" if arguments.drill_only else f"SEED={seed} for {arguments.seconds:.0f} seconds"
    say(f"{what}; logs in {directory / 'logs'}")
    # A receiver that is cut off would log a traceback for each unanswered request.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    leftovers.mark(directory)
    try:
        chaos = Chaos(directory, seed, arguments.seconds)
        code = chaos.drill() if arguments.drill_only else chaos.run()
    except KeyboardInterrupt:
        say("Interrupted.")
        return 1
    if code == 0:
        shutil.rmtree(directory, ignore_errors=True)
    return code


class Chaos:
    """One run. Troubles have a random generator of their own, so that a seed repeats them in the same order."""

    def __init__(self, directory: Path, seed: int, seconds: float) -> None:
        self._seconds = seconds
        self._began = 0.0
        self._chance = random.Random(seed)
        self._tempers = Tempers(random.Random(seed + 1))
        self._stack = Stack(directory, PROCESSES, SETTINGS, on_end=lambda name, code: self._note_exit(name, code))
        self._receiver = Receiver(self._stack.certificates.ca_file.parent)
        self._receiver.behaviour = self._tempers
        self._troubles = Troubles(self._stack, self._receiver, self._chance, longest_freeze=LEASE_SECONDS * 1.5)

    def run(self) -> int:
        with self._receiver, self._stack:
            shops = open_shops(self._stack, self._receiver, len(TEMPERS))
            walking = open_shop(self._stack, self._receiver, "Walkers")
            self._tempers.by_path = {shop.hook: temper for shop, temper in zip(shops, TEMPERS, strict=True)}
            self._tempers.by_path[walking.hook] = good
            return self._run(shops, walking)

    def drill(self) -> int:
        """Only the loss of the database and its restore."""
        with self._receiver, self._stack:
            return _judge(drill(self._stack, self._receiver, say, LEASE_SECONDS))

    def _run(self, shops: Sequence[Shop], walking: Shop) -> int:
        given_up = [shop for shop, temper in zip(shops, TEMPERS, strict=True) if temper is refusing]
        wishes = Wishes(self._stack, shops, random.Random(self._chance.random()))
        chance = random.Random(self._chance.random())
        self._walkers = Walkers(self._stack, self._receiver, walking, self._seconds, chance)
        self._began = time.monotonic()
        with self._walkers, Load(shops, clients=2, contacts=5, pause_seconds=0.2) as load:
            while time.monotonic() - self._began < self._seconds:
                let_pass(self._chance.uniform(0.5, 4))
                trouble = self._troubles.make_one()
                self._tell(f"{trouble.what} {trouble.process or ''} ({trouble.ended - trouble.began:.1f} s)")
                wishes.make_some()
        self._tell("the load has ended")
        # Processes that the last trouble will end have ended by then.
        let_pass(10)
        self._stack.processes.wait_ready(120)
        self._tempers.are_calm = True
        settled_seconds = self._bring_to_an_end(shops, given_up, wishes)
        account = Account(self._stack, self._receiver, load, self._troubles.made, wishes.made, given_up, LEASE_SECONDS)
        counts = [account.settle(shop) for shop in shops]
        walked, flaws = self._walkers.settle()
        account.flaws += flaws
        self._print_table(counts, settled_seconds)
        say(f"automations: {_said(walked)}")
        say(f"troubles: {_said(Counter(trouble.what for trouble in self._troubles.made))}")
        say(f"asked for: {_said(Counter(wish.what for wish in wishes.made if wish.accepted))}")
        say(f"received again, because: {_said(account.reasons)}")
        say(f"refused and tried again: {len(load.refused)}")
        self._tell("the drill: a backup, the loss of the database, and its restore")
        return _judge(account.flaws + drill(self._stack, self._receiver, say, LEASE_SECONDS))

    def _bring_to_an_end(self, shops: Sequence[Shop], given_up: Sequence[Shop], wishes: Wishes) -> float:
        """Enables endpoints and resends deliveries until none is left; returns the seconds it took."""
        began = time.monotonic()
        for shop in given_up:
            wishes.delete(shop)
        others = [shop for shop in shops if shop not in given_up]
        for _ in range(MOST_ROUNDS):
            wait_until(lambda: self._left(shops) == 0, MOST_SECONDS_TO_SETTLE, "all that was begun has ended")
            failed = [shop for shop in others if self._undelivered(shop)]
            if not failed:
                break
            for shop in failed:
                wishes.enable(shop, release_held=True)
                wishes.resend(shop, {"statuses": ["failed", "held"]})
        return time.monotonic() - began

    def _left(self, shops: Sequence[Shop]) -> int:
        workspaces = [shop.workspace_id for shop in shops]
        running = "SELECT count(*) FROM sweeps WHERE workspace_id = ANY(%s) AND due_at IS NOT NULL"
        swept = int(rows(self._stack, running, workspaces)[0][0])
        return unfinished(self._stack, shops) + swept + self._walkers.left()

    def _undelivered(self, shop: Shop) -> int:
        query = "SELECT count(*) FROM deliveries WHERE endpoint_id = %s AND status <> 'delivered'"
        return int(rows(self._stack, query, shop.endpoint_id)[0][0])

    def _print_table(self, counts: Sequence[dict[str, int]], settled_seconds: float) -> None:
        say(f"\nsettled in {settled_seconds:.0f} s\n")
        say(f"{'endpoint':18}" + "".join(f"{name:>11}" for name in counts[0]))
        for temper, row in zip(TEMPERS, counts, strict=True):
            say(f"{temper.__name__:18}" + "".join(f"{number:11}" for number in row.values()))
        say(f"{'all':18}" + "".join(f"{sum(row[name] for row in counts):11}" for name in counts[0]) + "\n")

    def _note_exit(self, name: str, code: int) -> None:
        self._troubles.note_exit(name, code)

    def _tell(self, what: str) -> None:
        say(f"{time.monotonic() - self._began:6.1f} s  {what}")


def _judge(flaws: Sequence[str]) -> int:
    """Prints what is wrong; returns the exit code."""
    for flaw in flaws:
        say(f"WRONG  {flaw}")
    say("lost 0; all is accounted for" if not flaws else f"{len(flaws)} things are wrong")
    return 1 if flaws else 0


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in sorted(counts.items())) or "nothing"


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
