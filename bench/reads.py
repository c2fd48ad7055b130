"""Reading one contact, compared with a bare Flask view that selects the same row by its key."""

from statistics import median

from app.lib import ids
from bench import sites
from bench.ceilings import beside, compared, cost, rounds
from bench.figures import Row
from bench.load import Plan
from bench.sites import Site, Tell

ROUNDS = 15
ROUND_SECONDS = 1.5
CONTACTS = 1000
LEAST_RATIO = 0.50


def run(site: Site, tell: Tell) -> list[Row]:
    """Runs two web processes only: ours, with a restricted and rate-limited token, and the bare one."""
    sites.start(site, "web.1")
    contacts = _contacts(site)
    read = site.plan(ROUND_SECONDS, token=site.restricted_token("contacts"), reads=contacts)
    with beside(site, "bare", "bench.bare:create_app()") as port:
        bare = Plan(port, "/bare", read.token, 0, ROUND_SECONDS, reads=contacts)
        rates = rounds(site, {"bare": bare, "read": read}, ROUNDS, tell)
        return [
            Row("reads", "bare Flask view", f"{median(rates['bare']):.0f}/s"),
            *compared("reads", rates, "read", "reads of one contact", LEAST_RATIO),
            cost("reads", site, "the bare view", bare),
            cost("reads", site, "a read", read),
        ]


def _contacts(site: Site) -> list[str]:
    """Creates contacts and returns their identifiers."""
    made = [ids.new("con") for _ in range(CONTACTS)]
    rows = ", ".join(
        f"('{contact}', '{site.workspace}', 'read-{number}@example.com', 'Ada', '{{vip}}', '{{\"orders\": 3}}')"
        for number, contact in enumerate(made)
    )
    site.query(f"INSERT INTO contacts (id, workspace_id, email, first_name, tags, custom_fields) VALUES {rows}")
    site.query("ANALYZE contacts")
    return made
