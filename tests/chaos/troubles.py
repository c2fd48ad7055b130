"""The faults injected in the long run, one at a time, and when each of them happened."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.journeys.faults import empty_redis, let_pass, names, redis_away, redis_hanging
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

SENDERS = ("deliveries", "slow-deliveries")
WORKERS = ("writes", "automations", *SENDERS, "retries", "scheduler")


@dataclass(frozen=True)
class Trouble:
    """A fault. `process` is the one it affected, if it was a single one; times are Unix times."""

    what: str
    process: str | None
    began: float
    ended: float

    @property
    def is_of_sender(self) -> bool:
        return self.process is not None and self.process.rpartition(".")[0] in SENDERS


class Troubles:
    """Injects random faults and records them, including processes that exit with a code other than 0."""

    def __init__(self, stack: Stack, receiver: Receiver, chance: random.Random, longest_freeze: float) -> None:
        self.made: list[Trouble] = []
        self._stack, self._receiver, self._chance = stack, receiver, chance
        self._longest_freeze = longest_freeze
        # Faults of workers are listed twice, because there are more workers.
        self._ways: list[Callable[[], str | None]] = [
            self.kill,
            self.kill,
            self.kill_type,
            self.end,
            self.freeze,
            self.freeze,
            self.empty_redis,
            self.lose_redis,
            self.hang_redis,
            self.restart_postgres,
            self.crash_postgres,
            self.cut_receiver_off,
        ]

    def make_one(self) -> Trouble:
        way, began = self._chance.choice(self._ways), time.time()
        process = way()
        trouble = Trouble(way.__name__, process, began, time.time())
        self.made.append(trouble)
        return trouble

    def note_exit(self, name: str, code: int) -> None:
        if code != 0:
            self.made.append(Trouble(f"exit {code}", name, time.time(), time.time()))

    def kill(self) -> str:
        name = self._chance.choice(names(self._stack, "web", *WORKERS))
        self._stack.processes.kill(name)
        return name

    def kill_type(self) -> None:
        for name in names(self._stack, self._chance.choice(WORKERS)):
            self._stack.processes.kill(name)

    def end(self) -> str:
        name = self._chance.choice(names(self._stack, *WORKERS))
        self._stack.processes.kill(name, signal.SIGTERM, tree=False)
        return name

    def freeze(self) -> str:
        name = self._chance.choice(names(self._stack, *WORKERS))
        self._stack.processes.freeze(name)
        try:
            let_pass(self._chance.uniform(1, self._longest_freeze))
        finally:
            self._stack.processes.thaw(name)
        return name

    def empty_redis(self) -> None:
        empty_redis(self._stack)

    def lose_redis(self) -> None:
        with redis_away(self._stack):
            let_pass(self._chance.uniform(0, 5))

    def hang_redis(self) -> None:
        with redis_hanging(self._stack):
            let_pass(self._chance.uniform(0, 6))

    def restart_postgres(self) -> None:
        self._stack.postgres.stop()
        let_pass(self._chance.uniform(0, 3))
        self._stack.postgres.start()

    def crash_postgres(self) -> None:
        self._stack.postgres.kill()
        self._stack.postgres.start()

    def cut_receiver_off(self) -> None:
        self._receiver.stop()
        let_pass(self._chance.uniform(0, 4))
        self._receiver.start()
