"""Searching contacts: the first page over HTTP, in a workspace of a million and in a small one beside it.

The contacts are made in the database, a third of them with what the newer ones do not have. Each term is asked for
several times after once; its p95 counts. Target: 50 ms for each.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import quote

from bench import sites
from bench.errors import BenchError
from bench.figures import Row, at_most, milliseconds, percentile
from bench.sites import Site

MOST_MS = 50
ASKED = 20
SMALL = 500
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gita", "Hugo", "Ines", "Jan")
NAMES += ("Kira", "Luca", "Mia", "Noah", "Olga", "Paul", "Rosa", "Sam", "Tina", "Zoë")
TERMS = {
    "what all have": "q=example.com",
    "what one in twenty has": "q=gita",
    "what one in a hundred has": "q=%2B4930099",
    "what one in a thousand has": "q=family0077",
    "what one has": "q=customer-0123457",
    "part of one's e-mail address": "q=.0123457@exa",
    "what none has": "q=nobodyatall",
    "what none has, of common letters": "q=moc.elpmaxe",
    "two letters that all have": "q=am",
    "two letters that few have": "q=qx",
    "two letters that none has": "q=xq",
    "two signs that all have": "q=@e",
    "two signs that none has": "q=%25_",
    "two digits": "q=77",
    "a letter with an accent": "q=zoë",
    "what a third has, none of the newest": "q=imported-",
    "a tag that all have": "tag=customer",
    "a tag that few have": "tag=vip",
    "a tag and a name": "tag=vip&q=gita",
}
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """The times of the first page, of the one after it, and how many were on the first."""

    first: list[float]
    next: list[float]
    shown: int

    def __str__(self) -> str:
        p50, p95 = (milliseconds(percentile(self.first, share)) for share in (0.5, 0.95))
        after = f", the next page {milliseconds(percentile(self.next, 0.5))}" if self.next else ""
        return f"p50 {p50}, p95 {p95}{after}, {self.shown} shown"


def run(site: Site, tell: Tell) -> list[Row]:
    return _run(site, 1_000_000, tell)


def quick(site: Site, tell: Tell) -> list[Row]:
    """Small, to try whether it works: the figures say little."""
    return _run(site, 20_000, tell)


def _run(site: Site, number: int, tell: Tell) -> list[Row]:
    small = site.stack.command("workspace", "create", "Small")
    began = time.monotonic()
    _seed(site, site.workspace, number)
    _seed(site, small["workspace"]["id"], SMALL, first=number)
    tell(f"{number:,} contacts made in {time.monotonic() - began:.0f} s")
    sites.start(site, "web.1")
    rows = [Row("search", f"index of {number:,} contacts", _size(site))]
    for size, workspace, token in (
        (number, site.workspace, site.token),
        (SMALL, small["workspace"]["id"], small["token"]),
    ):
        connection = HTTPConnection("127.0.0.1", site.stack.port, timeout=60)
        for what, query in TERMS.items():
            found = _ask(connection, f"/api/v1/workspaces/{workspace}/contacts?{quote(query, safe='=&%')}", token)
            tell(f"{size:,}: {what} ({query}): {found}")
            p95 = 1000 * percentile(found.first, 0.95)
            rows.append(at_most("search", f"of {size:,}, {what}, p95", p95, MOST_MS, " ms"))
    return rows


def _ask(connection: HTTPConnection, path: str, token: str) -> Found:
    _, page = _get(connection, path, token)
    first = [_get(connection, path, token)[0] for _ in range(ASKED)]
    cursor = page["meta"]["nextCursor"]
    following = [_get(connection, f"{path}&cursor={cursor}", token)[0] for _ in range(ASKED)] if cursor else []
    return Found(first, following, len(page["data"]))


def _get(connection: HTTPConnection, path: str, token: str) -> tuple[float, dict]:
    began = time.perf_counter()
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        raise BenchError(f"{path}: {response.status} {content.decode(errors='replace')}")
    return time.perf_counter() - began, json.loads(content)


def _seed(site: Site, workspace: str, number: int, first: int = 0) -> None:
    """Without the index first, which is many times as slow."""
    [(index,)] = site.query("SELECT pg_get_indexdef('contacts_keys'::regclass)")
    names = ", ".join(f"'{name}'" for name in NAMES)
    site.query(
        f"""
        SET maintenance_work_mem = '512MB';
        DROP INDEX contacts_keys;
        INSERT INTO contacts (id, workspace_id, external_id, email, phone, first_name, last_name, tags)
        SELECT 'con_0' || lpad(n::text, 25, '0'), '{workspace}',
            CASE WHEN n < {number} / 3 THEN 'imported-' ELSE 'customer-' END || lpad(n::text, 7, '0'),
            lower(name) || '.' || lpad(n::text, 7, '0') || '@example.com', '+4930' || lpad(n::text, 7, '0'),
            name, 'Family' || lpad((n % 1000)::text, 4, '0') || CASE WHEN n % 20000 = 7 THEN 'qx' ELSE '' END,
            CASE WHEN n % 5000 = 7 THEN '{{customer,vip}}' ELSE '{{customer}}' END::text[]
        FROM (
            SELECT n, (ARRAY[{names}])[1 + n % {len(NAMES)}] AS name
            FROM generate_series({first}, {first + number} - 1) AS n) AS numbered;
        {index};
        """
    )
    site.query("VACUUM ANALYZE contacts")


def _size(site: Site) -> str:
    [(size, table)] = site.query("SELECT pg_relation_size('contacts_keys'), pg_relation_size('contacts')")
    return f"{size / 1e6:,.0f} MB, the table {table / 1e6:,.0f} MB"
