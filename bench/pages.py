"""The pages over HTTP: time, statements and bytes, with 1,000,000 deliveries.

100,000 of the deliveries failed, in 50 groups. The history is inserted directly. Every page of the URL map is requested
as its audience, and so is the next page of each list. Targets: 100 ms at the median and 250 ms for 95 %, 12 statements,
60 kB compressed; 100 kB for a first page with its style sheet and script.
"""

import gzip
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from app.config import read
from app.lib import vault
from bench import sites, visits
from bench.figures import Row, at_most, milliseconds, percentile
from bench.sites import Site, Tell
from bench.statements import logging
from bench.visits import ASKED, PASSWORD, Browser
from tests import histories
from tests.browser.addresses import Address, addresses
from tests.histories import History
from tests.stack.processes import ROOT

MOST_MEDIAN_MS, MOST_P95_MS, MOST_STATEMENTS, MOST_KILOBYTES, MOST_FIRST_KILOBYTES = 100, 250, 12, 60, 100
COUNT_USAGE = """
from app import database
from app.domain.billing import usage

database.connect()
while usage.count_up():
    pass
"""
DELIVERIES, QUICK = 1_000_000, 20_000
FIRST = ("sign_ins.show", "overviews.show", "overviews.show_all")


@dataclass(frozen=True)
class Shown:
    """A page: the seconds of each request, its compressed size, and its text."""

    seconds: list[float]
    kilobytes: float
    text: str

    def __str__(self) -> str:
        p50, p95 = (milliseconds(percentile(self.seconds, share)) for share in (0.5, 0.95))
        return f"p50 {p50}, p95 {p95}, {self.kilobytes:.1f} kB"


def run(site: Site, tell: Tell, deliveries: int = DELIVERIES) -> list[Row]:
    began = time.monotonic()
    _seed(site, deliveries)
    tell(f"{deliveries:,} deliveries made in {time.monotonic() - began:.0f} s")
    sites.start(site)
    browsers = _browsers(site)
    rows: list[Row] = []
    shown: dict[Address, Shown] = {}
    for address in _with_next_pages(site, browsers):
        browser = browsers[address.audience]
        browser.get(address.path)  # a cold request, which is not measured
        asked = [browser.get(address.path) for _ in range(ASKED)]
        page = asked[-1][1]
        shown[address] = Shown([seconds for seconds, _ in asked], len(gzip.compress(page)) / 1000, page.decode())
        tell(f"{address.name}: {shown[address]}")
        rows += _timed(address.name, shown[address])
    rows += [_first(site, address, page) for address, page in shown.items() if address.endpoint in FIRST]
    return rows + _statements(site, list(shown))


def _seed(site: Site, deliveries: int) -> None:
    history = History(
        site.workspace,
        deliveries,
        deliveries // 10,
        endpoints=1_000,
        groups=50,
        contacts=deliveries // 10,
        sealed_secret=vault.encrypt(read(site.stack.environment).secret_keys, "whsec_bench"),
    )
    with site.cursor() as cursor:
        histories.make_partitions(cursor, history.days)
        histories.insert(cursor, history)
        cursor.execute(
            "INSERT INTO workspaces (id, name)"
            " SELECT 'ws_0' || lpad(n::text, 25, '0'), 'Shop ' || n FROM generate_series(1, 1000) AS n"
        )
        cursor.execute("VACUUM ANALYZE")
    # The scheduler counts usage every minute; it would take long to count a month at once.
    subprocess.run([sys.executable, "-c", COUNT_USAGE], cwd=ROOT, env=site.stack.environment, check=True)


def _browsers(site: Site) -> dict[str, Browser]:
    people = {"members": "owner@bench.example", "staff": "sam@bench.example"}
    member = ("member", "create", site.workspace, people["members"], "--role", "owner")
    for command in (member, ("support", "create", people["staff"])):
        site.stack.command(*command, input=f"{PASSWORD}\n")
    signed = {audience: Browser(site, email) for audience, email in people.items()}
    return {"everybody": Browser(site, None), **signed}


def _with_next_pages(site: Site, browsers: dict[str, Browser]) -> Iterator[Address]:
    """Yields every page, and the second page of each list."""
    for address in addresses(site.stack.environment, site.query, site.workspace):
        yield address
        text = browsers[address.audience].get(address.path)[1].decode()
        if following := re.search(r'rel="next" href="([^"]+)"', text):
            yield Address(f"{address.name}, next page", following[1].replace("&amp;", "&"), address.audience)


def _timed(name: str, shown: Shown) -> list[Row]:
    p50, p95 = (1000 * percentile(shown.seconds, share) for share in (0.5, 0.95))
    return [
        at_most("pages", f"{name}, p50", p50, MOST_MEDIAN_MS, " ms"),
        at_most("pages", f"{name}, p95", p95, MOST_P95_MS, " ms"),
        at_most("pages", f"{name}, compressed", shown.kilobytes, MOST_KILOBYTES, " kB"),
    ]


def _first(site: Site, address: Address, shown: Shown) -> Row:
    """Describes the size of a page with everything that it loads."""
    stranger = Browser(site, None)
    assets = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', shown.text))
    total = shown.kilobytes + sum(len(gzip.compress(stranger.get(asset)[1])) / 1000 for asset in assets)
    return at_most("pages", f"{address.name} with {len(assets)} assets", total, MOST_FIRST_KILOBYTES, " kB")


def _statements(site: Site, found: list[Address]) -> list[Row]:
    people = {"members": "owner@bench.example", "staff": "sam@bench.example", "everybody": None}
    with logging(site):
        browsers = {audience: Browser(site, email) for audience, email in people.items()}
        return [
            at_most(
                "pages",
                f"{each.name}, statements",
                visits.statements(site, browsers[each.audience], each.path),
                MOST_STATEMENTS,
                places=0,
            )
            for each in found
        ]
