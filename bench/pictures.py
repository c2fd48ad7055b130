"""The picture of an automation with 200 steps and 1,000,000 runs, and the lists it leads to.

The runs are inserted directly. Measures time and statements of each page. Targets: 100 ms at the median and 200 ms for
95 %, 12 statements.
"""

import json
import time

from bench import sites, visits
from bench.figures import Row
from bench.sites import Site, Tell
from bench.visits import PASSWORD

RUNS, STEPS = 1_000_000, 200
QUICK = 10_000  # the runs of a small run
EMAIL = "owner@bench.example"
AUTOMATION = "aut_" + "0" * 26
_DEFINITION = """
    INSERT INTO automations (id, workspace_id, name, status, version, latest_version, definition, exits)
    VALUES (%(automation)s, %(workspace)s, 'Large', 'published', 1, 1, %(definition)s, '[]')
"""
_VERSION = """
    INSERT INTO automation_versions (automation_id, number, workspace_id, definition)
    VALUES (%(automation)s, 1, %(workspace)s, %(definition)s)
"""
# Of 20 runs, one waits and one has failed, at any of the steps.
_RUNS = """
    INSERT INTO runs (id, workspace_id, automation_id, version, contact_id, trace_id, is_counted, due_at, created_at,
        started_at, finished_at, status, step, waits_for, resume_at, failure)
    SELECT 'run_' || lpad(n::text, 26, '0'), %(workspace)s, %(automation)s, 1, 'con_' || lpad(n::text, 26, '0'),
        'bench', true, NULL, now(), now(), CASE WHEN n %% 20 <> 1 THEN now() END,
        CASE n %% 20 WHEN 1 THEN 'waiting' WHEN 2 THEN 'failed' ELSE 'completed' END,
        CASE WHEN n %% 20 IN (1, 2) THEN 's' || n / 20 %% %(steps)s END,
        CASE WHEN n %% 20 = 1 THEN 'time' END, CASE WHEN n %% 20 = 1 THEN now() + interval '30 days' END,
        CASE WHEN n %% 20 = 2 THEN '{"code": "error", "detail": "It failed.", "step": null}'::json END
    FROM generate_series(1, %(runs)s) AS n
"""
_COUNTS = """
    INSERT INTO run_counts (automation_id, version, grain, starts_at, step, key, amount)
    SELECT %(automation)s, 1, grain, starts_at, step, key, amount FROM (
        SELECT '' AS step, status AS key, count(*) AS amount FROM runs WHERE automation_id = %(automation)s GROUP BY 2
        UNION ALL
        SELECT step, status, count(*) FROM runs
        WHERE automation_id = %(automation)s AND step IS NOT NULL GROUP BY step, status
        UNION ALL SELECT 's' || n, key, %(runs)s FROM generate_series(0, %(steps)s - 1) AS n, unnest(
            ARRAY['entered', 'left', 'arm:then']) AS key) AS counted
    CROSS JOIN (VALUES ('all', timestamptz 'epoch'), ('day', date_trunc('day', now(), 'UTC'))) AS time(grain, starts_at)
"""


def run(site: Site, tell: Tell, runs: int = RUNS) -> list[Row]:
    began = time.monotonic()
    _seed(site, runs)
    tell(f"{runs:,} runs made in {time.monotonic() - began:.0f} s")
    site.stack.command("member", "create", site.workspace, EMAIL, "--role", "owner", input=f"{PASSWORD}\n")
    sites.start_types(site, "web")
    home = f"/workspaces/{site.workspace}"
    at = f"dashboard/runs?automation_id={AUTOMATION}&version=1&step=s1&at"
    paths = {
        "the list": "automations",
        "the picture, folded": f"automations/{AUTOMATION}",
        "the picture, unfolded": f"automations/{AUTOMATION}?fold=all",
        "the picture of 7 days": f"automations/{AUTOMATION}?fold=all&period=week",
        "the versions": f"automations/{AUTOMATION}/versions",
        "the runs that wait": f"{at}=waiting",
        "the runs that failed": f"{at}=failed",
    }
    return visits.measured("picture", site, EMAIL, {name: f"{home}/{path}" for name, path in paths.items()}, tell)


def _definition() -> str:
    """Returns branches with two steps each, some of which have another branch inside."""
    condition = {"field": "contact.tags", "is": "contains", "value": "vip"}
    steps: list[dict[str, object]] = []
    for number in range(0, STEPS, 4):
        inner = [{"id": f"s{number + 1}", "kind": "wait", "seconds": 86_400}]
        inner += [{"id": f"s{number + 2}", "kind": "send_message", "text": "Hello {{ contact.first_name }}!"}]
        other = [{"id": f"s{number + 3}", "kind": "add_tag", "tag": "welcomed"}]
        steps.append({"id": f"s{number}", "kind": "branch", "if": condition, "then": inner, "else": other})
    return json.dumps({"triggers": [{"event": "tag.added", "tag": "vip"}], "steps": steps})


def _seed(site: Site, runs: int) -> None:
    values = {"workspace": site.workspace, "automation": AUTOMATION, "runs": runs, "steps": STEPS}
    values["definition"] = _definition()
    with site.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        for statement in (_DEFINITION, _VERSION, _RUNS, _COUNTS):
            cursor.execute(statement, values)
        cursor.execute("VACUUM ANALYZE")
