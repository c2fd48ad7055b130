"""Reports of the inbox over a year with 200,000 conversations and 600,000 messages.

The rows are inserted directly. Measures how long counting them takes, and the time and statements of the report's page
and of the API's answer, for 30 days and for a year. Targets: 100 ms at the median and 200 ms for 95 %, 12 statements.
"""

import subprocess
import sys
import time

from bench import sites, visits
from bench.figures import Row
from bench.sites import Site, Tell
from bench.visits import PASSWORD
from tests.stack.processes import ROOT

CONVERSATIONS, DAYS = 200_000, 365
QUICK = 2_000  # the conversations of a small run
EMAIL = "owner@bench.example"
QUERIES = ("", "?by=label", "?by=member", "?range=90d&by=label", "?first_day={year}", "?first_day={year}&by=label")
# Prints how many things were counted, and how many seconds that took.
COUNT = """
import time
from app import database
from app.domain.reports import counting

database.connect()
began, total = time.monotonic(), 0
while found := counting.count_up():
    total += found
print(total, time.monotonic() - began)
"""
_AT = "now() - interval '{days} days' + n * interval '{days} days' / {conversations}"
_ID = "_0' || lpad(({})::text, 25, '0')"
_CONVERSATIONS = f"""
    INSERT INTO conversations (id, workspace_id, contact_id, channel_id, status, assignee_id, labels, created_at)
    SELECT 'cnv{_ID.format("n")}, '{{workspace}}', 'con{_ID.format("n")}, 'chn{_ID.format("n % 10")},
        CASE WHEN n % 5 = 0 THEN 'open' ELSE 'closed' END, 'mem{_ID.format("n % 100")},
        ARRAY['label ' || n % 50, 'label ' || n * 7 % 50], {_AT}
    FROM generate_series(1, {{conversations}}) AS n
"""
_MESSAGES = f"""
    INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, status, author,
        created_at, sent_at)
    SELECT 'msg{_ID.format("n * 10 + part")}, '{{workspace}}', 'cnv{_ID.format("n")}, 'con{_ID.format("n")},
        'chn{_ID.format("n % 10")}, CASE part WHEN 1 THEN 'out' ELSE 'in' END,
        CASE part WHEN 1 THEN 'sent' ELSE 'received' END,
        json_build_object('type', CASE part WHEN 1 THEN 'member' ELSE 'contact' END,
            'id', 'mem{_ID.format("n % 100")}), at, CASE part WHEN 1 THEN at END
    FROM generate_series(1, {{conversations}}) AS n CROSS JOIN generate_series(0, 2) AS part
    CROSS JOIN LATERAL (SELECT {_AT} + part * (60 + n % 20000) * interval '1 second' AS at) AS moment
"""
_TRANSITIONS = """
    INSERT INTO conversation_transitions (workspace_id, conversation_id, channel_id, assignee_id, labels, kind, at)
    SELECT workspace_id, id, channel_id, assignee_id, labels, kind,
        created_at + CASE kind WHEN 'closed' THEN n % 100000 * interval '1 second' ELSE interval '0' END
    FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM conversations WHERE workspace_id = '{workspace}') AS talk
    CROSS JOIN (VALUES ('began'), ('closed')) AS kinds(kind) WHERE kind = 'began' OR status = 'closed'
"""
_PROGRESS = """
    INSERT INTO inbox_figure_progress VALUES (true, now() - interval '800 days', now() - interval '{days} days')
    ON CONFLICT (is_only) DO UPDATE SET begun_at = excluded.begun_at, counted_until = excluded.counted_until
"""


def run(site: Site, tell: Tell, conversations: int = CONVERSATIONS) -> list[Row]:
    began = time.monotonic()
    _seed(site, conversations)
    tell(f"{conversations:,} conversations made in {time.monotonic() - began:.0f} s")
    counted = subprocess.run(
        [sys.executable, "-c", COUNT],
        cwd=ROOT,
        env=site.stack.environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    number, seconds = counted.stdout.split()[-2:]
    [(figures, size)] = site.query("SELECT count(*), pg_total_relation_size('inbox_figures') / 1e6 FROM inbox_figures")
    each = f"{float(seconds) / int(number) * 1e6:.0f} us each"
    rows = [Row("reports", f"{int(number):,} things counted: {figures:,} figures, {size:.0f} MB", each)]
    site.query("ANALYZE")
    site.stack.command("member", "create", site.workspace, EMAIL, "--role", "owner", input=f"{PASSWORD}\n")
    sites.start_types(site, "web")
    [(year,)] = site.query(f"SELECT (now() - interval '{DAYS - 1} days')::date")
    paths = [f"/workspaces/{site.workspace}/reports{query.format(year=year)}" for query in QUERIES]
    return rows + visits.measured("reports", site, EMAIL, {path.rpartition("/")[2]: path for path in paths}, tell)


def _seed(site: Site, conversations: int) -> None:
    values = {"workspace": site.workspace, "conversations": conversations, "days": DAYS}
    with site.cursor() as cursor:
        # Triggers are off: the rows that they would write are inserted here, with times of the past.
        cursor.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        for statement in (_CONVERSATIONS, _MESSAGES, _TRANSITIONS, _PROGRESS):
            cursor.execute(statement.format(**values))
        cursor.execute("VACUUM ANALYZE")
