"""Accepting writes, compared with a bare Flask view that inserts a row.

Both run under the same gunicorn and the same load. Everything is on: a restricted token, the rate limit and validation.
Writes are measured with and without an idempotency key.
"""

from dataclasses import replace
from statistics import median

import psycopg2

from bench import sites
from bench.bare import TABLE
from bench.ceilings import beside, compared, cost, ratios, rounds
from bench.figures import Row, breakdown
from bench.load import Plan
from bench.offers import offer
from bench.sites import Site, Tell
from bench.statements import counted

ROUNDS = 25
ROUND_SECONDS = 1.0  # short and many rounds, so that other load on the machine affects all plans alike
LEAST_RATIO = 0.60


def run(site: Site, tell: Tell) -> list[Row]:
    """Measures the web process alone, so that only acceptance counts, then all processes together."""
    sites.start(site, "web.1")
    token = site.restricted_token("contacts")
    write = site.plan(ROUND_SECONDS, token=token)
    keyed = replace(write, keys=True)
    with beside(site, "bare", "bench.bare:create_app()", DATABASE_URL=_bare_database(site)) as port:
        bare = Plan(port, "/bare", token, 0, ROUND_SECONDS)
        alone = rounds(site, {"bare": bare, "write": write, "keyed": keyed}, ROUNDS, tell)
        rows = [
            Row("accept", "bare Flask view", f"{median(alone['bare']):.0f}/s"),
            *compared("accept", alone, "write", "writes", LEAST_RATIO),
            *compared("accept", alone, "keyed", "writes with an Idempotency-Key", LEAST_RATIO),
            cost("accept", site, "the bare view", bare),
            cost("accept", site, "a write", write),
            cost("accept", site, "a write with a key", keyed),
            _statements(site, "a write", write),
            _statements(site, "a write with a key", keyed),
        ]
        site.query("TRUNCATE jobs, idempotency_keys")
        sites.start(site)
        busy = rounds(site, {"bare": bare, "keyed": keyed}, 3, tell)
    figure = f"{median(busy['keyed']):.0f}/s, {median(ratios(busy, 'keyed')):.2f} of bare"
    return [*rows, Row("accept", "writes with a key while workers apply them", figure)]


def _statements(site: Site, title: str, plan: Plan) -> Row:
    with counted(site) as statements:
        writes = len(offer(replace(plan, first=site.new_contacts(), seconds=2.0)).at)
    statements.check(writes)
    print(breakdown(f"Accepting {title}", statements, writes), end="\n\n", flush=True)
    return Row("accept", f"SQL statements of {title}", f"{statements.total / writes:.2f}")


def _bare_database(site: Site) -> str:
    address = site.stack.postgres.create_database("bare")
    with psycopg2.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(TABLE)
    connection.close()
    return address
