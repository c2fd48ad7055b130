"""Random conditions on the contacts of `bench.segments`: scans must find what Python finds.

`python -m bench.conditions WORKSPACE` prints for how many conditions a scan finds other contacts.
"""

import json
import random
import subprocess
import sys
from typing import Any

from app import database
from app.domain.segments import scans
from app.domain.segments.scans import Scan
from app.domain.triggers import conditions
from app.models.contacts import Contact
from bench.sites import Site
from tests.stack.processes import ROOT

CONTACTS, NUMBER, SEED = 10_000, 50, 25


def count_unlike(site: Site) -> int:
    """Returns for how many conditions a scan finds other contacts than `conditions.holds`.

    Compares only the oldest CONTACTS contacts.
    """
    command = [sys.executable, "-m", "bench.conditions", site.workspace]
    done = subprocess.run(command, cwd=ROOT, env=site.stack.environment, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout.split()[-1])


def main(workspace_id: str) -> None:
    database.connect()
    contacts = list(Contact.in_workspace(workspace_id).order_by(Contact.id).limit(CONTACTS))
    shown = {each.id: scans.variables(each, {}) for each in contacts}
    chance, unlike = random.Random(SEED), 0
    for _ in range(NUMBER):
        condition = _condition(chance, depth=2)
        found = shown.keys() & _found(workspace_id, condition, contacts[-1].id)
        expected = {contact_id for contact_id, values in shown.items() if conditions.holds(condition, values)}
        if found != expected:
            unlike += 1
            print(json.dumps(condition), sorted(found ^ expected)[:3], file=sys.stderr)
    print(unlike)


def _found(workspace_id: str, condition: dict[str, Any], last_id: str) -> set[str]:
    """Returns the contacts that a scan finds up to `last_id`, and perhaps a few beyond it."""
    found: set[str] = set()
    for part in Scan(workspace_id, condition, is_newest_first=False).parts(seconds=600):
        found |= set(part.ids)
        if part.last_id is None or part.last_id >= last_id:
            break
    return found


def _condition(chance: random.Random, depth: int) -> dict[str, Any]:
    if depth and chance.random() < 0.6:
        inner = [_condition(chance, depth - 1) for _ in range(chance.randint(1, 3))]
        return chance.choice([{"all": inner}, {"any": inner}, {"not": inner[0]}])
    field, values = chance.choice(
        [
            ("contact.tags", ["regular", "vip", "wholesale", "Café", "CAFÉ"]),
            ("contact.custom_fields.plan", ["free", "pro", "Team", "team"]),
            ("contact.custom_fields.orders", [0, 7, "39", 12.0]),
            ("contact.first_name", ["ada", "ZOË", "i\u0307pek", "Karen "]),
            ("contact.locale", ["de", "fr", "pt-BR", "PT-br"]),
            ("contact.email", ["customer.7", "EXAMPLE.COM", "customer.99@example.com"]),
            ("contact.opted_out", [True, False, "true"]),
        ]
    )
    comparison = chance.choice(["equals", "not_equals", "contains", "starts_with", "exists", "not_exists", "one_of"])
    if comparison == "one_of":
        return {"field": field, "is": comparison, "value": chance.sample(values, 2)}
    if comparison in ("exists", "not_exists"):
        return {"field": field, "is": comparison}
    return {"field": field, "is": comparison, "value": chance.choice(values)}


if __name__ == "__main__":
    main(sys.argv[1])
