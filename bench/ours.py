"""The service in the deliveries benchmark: the processes of the Procfile, endpoints, bells."""

import time

from bench import runs
from bench.errors import BenchError
from bench.nginx import Nginx
from bench.programs import Program
from bench.runs import Run
from bench.sites import Site
from bench.statements import Statements, counted

WARM_DELIVERIES = 400


class Mail:
    """Creates endpoints and their mail, and rings for it, on request."""

    def __init__(self, site: Site) -> None:
        environment = site.stack.environment
        # Seeding rings in another database of Redis, where no worker hears the bells.
        deaf = {"REDIS_URL": site.stack.redis.url.removesuffix("0") + "1"}
        self._seeder = Program("bench.mail", environment | deaf)
        self._ringer = Program("bench.mail", environment)

    def endpoints(self, addresses: list[str]) -> list[tuple[str, str]]:
        """Creates an endpoint for each address. Returns their workspaces and identifiers."""
        return [(workspace, endpoint) for workspace, endpoint in self._seeder.ask(endpoints=addresses)]

    def seed(self, workspaces: list[str], number: int) -> None:
        """Creates `number` deliveries in all, in rotation over the workspaces. Workers hear no bell."""
        self._seeder.ask(workspaces=workspaces, events=number)

    def ring(self, endpoints: list[str]) -> None:
        """Rings for all endpoints. The first bells are heard before it returns."""
        self._ringer.ask(ring=endpoints)

    def close(self) -> None:
        for program in (self._seeder, self._ringer):
            program.close()


class Ours:
    """Creates deliveries to endpoints that have a workspace each. The running workers send them."""

    def __init__(self, site: Site, nginx: Nginx, mail: Mail, endpoints: int) -> None:
        self.name = f"ours, {endpoints:,} endpoint{'s' if endpoints > 1 else ''}"
        self._site, self._nginx, self._mail = site, nginx, mail
        made = mail.endpoints([f"{nginx.url}/endpoints/{number}" for number in range(endpoints)])
        self._workspaces = [workspace for workspace, _ in made]
        self._endpoints = [endpoint for _, endpoint in made]

    def run(self, number: int) -> Run:
        """Makes one run, after a warm-up that opens connections to the receiver."""
        warm = max(WARM_DELIVERIES, len(self._endpoints))
        self._seed(warm)
        self._ring()
        runs.wait(warm, self._left, time.monotonic())
        self._seed(number)
        return self._run(number)

    def statements(self, number: int) -> Statements:
        """Counts the statements of the processes during a run. Restarts them before and after."""
        self._seed(number)
        with counted(self._site) as statements:
            self._run(number)
        return statements

    def body(self) -> str:
        """Returns the body of a delivery. There must have been a run."""
        return str(self._site.query("SELECT convert_from(body, 'UTF8') FROM events LIMIT 1")[0][0])

    def _run(self, number: int) -> Run:
        run = runs.run(self._site, self._nginx, number, self._ring, self._left)
        if failed := self._site.query("SELECT count(*) FROM deliveries WHERE status <> 'delivered'")[0][0]:
            raise BenchError(f"{failed} deliveries failed.")
        return run

    def _seed(self, number: int) -> None:
        self._mail.seed(self._workspaces, number)
        # Autovacuum would have done this if the rows had been created over a day.
        self._site.query("ANALYZE events, deliveries, attempts")

    def _ring(self) -> None:
        self._mail.ring(self._endpoints)

    def _left(self) -> int:
        return int(self._site.query("SELECT count(*) FROM deliveries WHERE due_at IS NOT NULL")[0][0])
