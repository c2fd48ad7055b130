"""Segments of a workspace with 1,000,000 contacts: how long a count of 300,000 of them takes.

The contacts are inserted directly. Targets: 1 s at the median, counted in full, and 50 ms for a tag that 100 contacts
have. Also, 50 random conditions must find, among 10,000 contacts, the same ones as Python's evaluation of the
condition.
"""

import time
from typing import Any

from app.models.contacts import SEGMENT_SIZE
from bench import conditions, sites
from bench.errors import BenchError
from bench.figures import Row, at_most, percentile
from bench.sites import Site, Tell
from bench.statements import logged_since, logging
from tests.histories import typeid
from tests.journeys.shops import Caller

CONTACTS, ASKED, MOST_SECONDS, MOST_RARE_MS = 1_000_000, 5, 1.0, 50
QUICK = 20_000  # the contacts of a small run
# Of ten contacts, three are regulars. Of six, one has each of the other tags. Of 10,000, one is of the press.
_CONTACTS = """
    INSERT INTO contacts (id, workspace_id, external_id, email, first_name, last_name, locale, tags, custom_fields,
        opted_out, segment, created_at, updated_at)
    SELECT {id}, '{workspace}', 'customer-' || n, 'customer.' || n || '@example.com',
        (ARRAY['Ada', 'Grace', 'Zoë', 'Annie', 'İpek', 'Hedy', 'Karen'])[1 + n % 7], 'Moreau' || n % 1000,
        (ARRAY['de', 'fr', 'pt-BR', NULL])[1 + n % 4],
        array_remove(ARRAY[CASE WHEN n % 10 < 3 THEN 'regular' END,
            CASE n % 6 WHEN 1 THEN 'vip' WHEN 2 THEN 'wholesale' WHEN 3 THEN 'Café' END,
            CASE WHEN n % 10000 = 0 THEN 'press' END], NULL),
        jsonb_build_object('plan', (ARRAY['free', 'pro', 'Team'])[1 + n % 3], 'orders', n % 40),
        n % 25 = 0, n / {segment_size}, now() - n * interval '30 seconds', now()
    FROM generate_series(1, {contacts}) AS n
"""
# Does what `ContactSegment.open_before` does, for contacts that were inserted with the number of their segment.
OPEN_SEGMENTS = """
    INSERT INTO contact_segments (workspace_id, number, from_id)
    SELECT workspace_id, segment, min(id) FROM contacts WHERE segment > 0 GROUP BY workspace_id, segment
"""
# Python evaluates every contact whose name has such letters, so the count ends unfinished, and says so.
BEYOND = "a name with letters beyond ASCII"
RARE = "a rare tag"
SEGMENTS: dict[str, dict[str, Any]] = {
    "a tag": {"field": "contact.tags", "is": "contains", "value": "regular"},
    RARE: {"field": "contact.tags", "is": "contains", "value": "Press"},
    "a tag and three fields": {
        "all": [
            {"field": "contact.tags", "is": "contains", "value": "regular"},
            {"field": "contact.opted_out", "is": "equals", "value": False},
            {"field": "contact.custom_fields.orders", "is": "greater_than", "value": 1},
            {"field": "contact.created_at", "is": "greater_than", "days_ago": 400},
        ]
    },
    BEYOND: {"field": "contact.first_name", "is": "one_of", "value": ["zoë", "İpek"]},
    "a tag, never written to": {
        "all": [
            {"field": "contact.tags", "is": "contains", "value": "regular"},
            {"field": "contact.last_sent_at", "is": "not_exists"},
        ]
    },
}


def run(site: Site, tell: Tell, contacts: int = CONTACTS) -> list[Row]:
    began = time.monotonic()
    _seed(site, contacts)
    tell(f"{contacts:,} contacts made in {time.monotonic() - began:.0f} s")
    sites.start_types(site, "web")
    caller = Caller(site.stack.base_url, site.workspace, site.token)
    rows = [_counted(caller, name, condition, tell) for name, condition in SEGMENTS.items()]
    with logging(site):
        begin = site.stack.postgres.log.stat().st_size
        _count(Caller(site.stack.base_url, site.workspace, site.token), SEGMENTS["a tag"])
        rows.append(Row("segments", "a tag, statements", str(sum(logged_since(site, begin).values()))))
    what = f"of {conditions.NUMBER} conditions, judged unlike Python"
    return [*rows, at_most("segments", what, conditions.count_unlike(site), 0, places=0)]


def _seed(site: Site, contacts: int) -> None:
    id = typeid("con", "(1790000000000 + n)", "n")
    with site.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        values = {"workspace": site.workspace, "contacts": contacts, "segment_size": SEGMENT_SIZE}
        cursor.execute(_CONTACTS.format(id=id, **values))
        cursor.execute(OPEN_SEGMENTS)
        cursor.execute("RESET session_replication_role")
        cursor.execute("VACUUM ANALYZE contacts, contact_segments")


def _counted(caller: Caller, name: str, condition: dict[str, Any], tell: Tell) -> Row:
    found = [_count(caller, condition) for _ in range(ASKED)]
    seconds, data = percentile([each for each, _ in found], 0.5), found[0][1]
    tell(f"{name}: {data['count']:,} in {seconds:.2f} s")
    whole = "" if data["is_complete"] else ", not in full"
    what = f"{name}: {data['count']:,} counted{whole}"
    if name == BEYOND:
        return Row("segments", what, f"{seconds:.2f} s")
    if name == RARE:
        return at_most("segments", what, 1000 * seconds, MOST_RARE_MS, " ms")
    return at_most("segments", what, seconds, MOST_SECONDS, " s", places=2)


def _count(caller: Caller, condition: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """Returns how many seconds a count took, and its answer."""
    began = time.perf_counter()
    answer = caller.call("POST", "segments/count", {"filter": condition})
    if answer.status != 200:
        raise BenchError(f"A count was answered {answer.status}: {answer.data}")
    return time.perf_counter() - began, answer.data
