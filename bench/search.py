"""Searching contacts: the first page over HTTP, in a workspace of a million and in a small one beside others.

The contacts are inserted directly; terms that only older ones match are the hardest. Each term is searched for once,
then several times, of which the p95 counts. Target: 50 ms for each.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from urllib.parse import quote

from app.models.contacts import SEGMENT_SIZE
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
    "a tag that all have": "tag=customer",
    "a tag that few have": "tag=vip",
    "a tag that ten have": "tag=ten",
    "a tag that none has": "tag=none",
    "a tag that every second has": "tag=even",
    "a tag and a name": "tag=vip&q=gita",
    "a long text that none has": "q=gita%20uwe%20oskar%20quinn%20family0077%20gita.0123456@example.com%20%2B49",
    "what every second has, and what the others have": "tag=even&q=odd",
    "changed since": "updated_since={since}",
    "changed since, none": "updated_since={later}",
    "changed since, of all": "updated_since={since}&tag=customer",
    "changed since, of a few": "updated_since={since}&tag=vip",
    "changed since, of those that did not": "updated_since={since}&q=customer-",
    "changed since, none of the older half": "updated_since={later}&tag=uwe",
}
# Terms that only older contacts match, as a tag and as a name, and the share of contacts that match.
OLDER = {
    "all but the newest 5,000": ("yara", 0.995),
    "all but the newest 100,000": ("xenia", 0.9),
    "the older half": ("uwe", 0.5),
    "the oldest third": ("oskar", 0.333),
    "the oldest 50,000": ("quinn", 0.05),
}
for what, (name, _) in OLDER.items():
    TERMS |= {f"{what}, a tag": f"tag={name}", f"{what}, a text": f"q={name}", f"{what}, both": f"tag={name}&q={name}"}
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """The time of the first, cold search, the times of the first and second page, and the length of the first page."""

    cold: float
    first: list[float]
    next: list[float]
    shown: int

    def __str__(self) -> str:
        p50, p95 = (milliseconds(percentile(self.first, share)) for share in (0.5, 0.95))
        after = f", the next page p50 {milliseconds(percentile(self.next, 0.5))}" if self.next else ""
        after += f", p95 {milliseconds(percentile(self.next, 0.95))}" if self.next else ""
        return f"p50 {p50}, p95 {p95}, at first {milliseconds(self.cold)}{after}, {self.shown} shown"


def run(site: Site, tell: Tell) -> list[Row]:
    return _run(site, 1_000_000, tell)


def quick(site: Site, tell: Tell) -> list[Row]:
    """A small run that shows whether the benchmark works; its figures mean little."""
    return _run(site, 20_000, tell)


def _run(site: Site, number: int, tell: Tell) -> list[Row]:
    small, others = (site.stack.command("workspace", "create", name) for name in ("Small", "Others"))
    began = time.monotonic()
    _seed(site, {site.workspace: number, small["workspace"]["id"]: SMALL, others["workspace"]["id"]: number // 5})
    tell(f"{number:,} contacts made in {time.monotonic() - began:.0f} s")
    sites.start(site, "web.1")
    rows = [Row("search", f"index of {number:,} contacts", _size(site))]
    for size, workspace, token in (
        (number, site.workspace, site.token),
        (SMALL, small["workspace"]["id"], small["token"]),
    ):
        connection = HTTPConnection("127.0.0.1", site.stack.port, timeout=60)
        for what, term in TERMS.items():
            query = term.format(since=_ago(days=1), later=_ago(hours=-1))
            found = _ask(connection, f"/api/v1/workspaces/{workspace}/contacts?{quote(query, safe='=&%:')}", token)
            tell(f"{size:,}: {what} ({query}): {found}")
            p95 = 1000 * percentile(found.first, 0.95)
            rows.append(at_most("search", f"of {size:,}, {what}, p95", p95, MOST_MS, " ms"))
    return rows


def _ask(connection: HTTPConnection, path: str, token: str) -> Found:
    cold, page = _get(connection, path, token)
    first = [_get(connection, path, token)[0] for _ in range(ASKED)]
    cursor = page["meta"]["nextCursor"]
    following = [_get(connection, f"{path}&cursor={cursor}", token)[0] for _ in range(ASKED)] if cursor else []
    return Found(cold, first, following, len(page["data"]))


def _get(connection: HTTPConnection, path: str, token: str) -> tuple[float, dict]:
    began = time.perf_counter()
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        raise BenchError(f"{path}: {response.status} {content.decode(errors='replace')}")
    return time.perf_counter() - began, json.loads(content)


def _ago(**delta: float) -> str:
    return (datetime.now(UTC) - timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seed(site: Site, numbers: Mapping[str, int]) -> None:
    """Creates the contacts of each workspace. Drops the index meanwhile, which makes it many times as fast."""
    [(index,)] = site.query("SELECT pg_get_indexdef('contacts_keys'::regclass)")
    site.query("DROP INDEX contacts_keys")
    for workspace, number in numbers.items():
        names = ", ".join(f"'{name}'" for name in NAMES)
        tags = " || ".join(
            f"CASE WHEN n < {share * number} THEN '{{{name}}}' ELSE '{{}}' END::text[]"
            for name, share in OLDER.values()
        )
        words = " || ".join(
            f"CASE WHEN n < {share * number} THEN ' {name}' ELSE '' END" for name, share in OLDER.values()
        )
        site.query(
            f"""
            INSERT INTO contacts (id, workspace_id, external_id, email, phone, first_name, last_name, tags, segment,
                created_at, updated_at)
            SELECT 'con_0' || lpad(n::text, 14, '0') || substr('{workspace}', 4, 11), '{workspace}',
                CASE WHEN n < {number} / 3 THEN 'imported-' ELSE 'customer-' END || lpad(n::text, 7, '0'),
                lower(name) || '.' || lpad(n::text, 7, '0') || '@example.com', '+4930' || lpad(n::text, 7, '0'),
                name || {words},
                'Family' || lpad((n % 1000)::text, 4, '0') || CASE WHEN n % 20000 = 7 THEN 'qx' ELSE '' END
                    || CASE WHEN n % 2 = 1 THEN ' odd' ELSE '' END,
                CASE WHEN n % 5000 = 7 THEN '{{customer,vip}}' ELSE '{{customer}}' END::text[]
                    || CASE WHEN n % ({number} / 10) = 7 THEN '{{ten}}' ELSE '{{}}' END::text[]
                    || CASE WHEN n % 2 = 0 THEN '{{even}}' ELSE '{{}}' END::text[] || {tags},
                n / {SEGMENT_SIZE}, now() - interval '9 days',
                CASE WHEN n < {number} / 3 AND n % 7 = 0 THEN now() ELSE now() - interval '9 days' END
            FROM (
                SELECT n, (ARRAY[{names}])[1 + n % {len(NAMES)}] AS name
                FROM generate_series(0, {number} - 1) AS n) AS numbered
            """
        )
    site.query(
        f"""
        INSERT INTO contact_segments
        SELECT workspace_id, segment, min(id) FROM contacts WHERE segment > 0 GROUP BY workspace_id, segment;
        SET maintenance_work_mem = '512MB';
        {index};
        """
    )
    site.query("VACUUM ANALYZE contacts")


def _size(site: Site) -> str:
    [(size, table)] = site.query("SELECT pg_relation_size('contacts_keys'), pg_relation_size('contacts')")
    return f"{size / 1e6:,.0f} MB, the table {table / 1e6:,.0f} MB"
