"""Warnings of an automation: likely mistakes in its draft, and problems that its runs have had."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from app import sql
from app.database import rows
from app.domain.automations import counts, definitions
from app.domain.automations.editing import step_trees
from app.domain.automations.steps import STEP_KINDS
from app.domain.triggers import dates
from app.domain.triggers.run_states import MOST_DEPTH
from app.domain.triggers.timed_triggers import key_of
from app.errors import Fault
from app.lib import json
from app.models.automations import Automation

# How many automations are searched for chains.
MOST_FOLLOWED = 50
MOST_WARNINGS = 20
_MISSING = "In version {}, names in the step '{}' printed nothing, {:,} times. The logs of runs tell which."

# Reserved example hosts (RFC 2606), which guides and templates use.
_EXAMPLE = re.compile(r"https?://((?:[a-z0-9-]+\.)*example(?:\.(?:com|net|org))?)(?!\.?[a-z0-9-])", re.IGNORECASE)
_IS_EXAMPLE = "The address of {} is only an example. Put in your own before you publish."


def of(automation: Automation) -> list[dict[str, Any]]:
    """Returns the warnings of a stored automation. Their number and cost are bounded."""
    warnings = []
    if automation.reentry != "once":
        followed = _followed(automation)
        found = definitions.chains(automation.id, automation.definition, followed)
        warnings += [_warning(each.detail, each.pointer, each.automation_ids) for each in found[:MOST_WARNINGS]]
    if refused := counts.of([automation.id], ["refused:depth"])[automation.id].get("refused:depth"):
        detail = f"{refused:,} starts were refused after {MOST_DEPTH} automations in a row had started each other."
        warnings.append(_warning(detail))
    warnings += [_warning(each.detail, each.pointer) for each in of_examples(automation.definition)]
    return warnings + of_dates(automation) + _of_runs(automation)


def of_examples(definition: Mapping[str, Any]) -> list[Fault]:
    """Returns the example addresses in the definition's requests and texts: at most MOST_WARNINGS.

    The pointers are into the definition, which may be incomplete.
    """
    found = [
        Fault(f"{placed.pointer}/{name}", _IS_EXAMPLE.format(host.lower()))
        for placed in step_trees.walk(definition)
        for name in STEP_KINDS[placed.step["kind"]].templates
        for host in dict.fromkeys(_EXAMPLE.findall(json.dumps(placed.step.get(name)).decode()))
    ]
    return found[:MOST_WARNINGS]


def of_dates(automation: Automation) -> list[dict[str, Any]]:
    """Returns a warning for each published trigger that cannot read the dates of some contacts.

    The `pointer` is "" if the draft does not have the trigger.
    """
    keys = [key_of(trigger) for trigger in automation.definition.get("triggers", ())]
    return [
        _warning(each.detail, f"/triggers/{keys.index(each.key)}" if each.key in keys else None)
        for each in dates.unreadable_of_automation(automation.id)
    ]


def _of_runs(automation: Automation) -> list[dict[str, Any]]:
    """Returns a warning for each step of the latest version whose texts had names without a value."""
    warned = counts.warned(automation.id, automation.latest_version)
    missing = list(warned.items())[:MOST_WARNINGS]
    return [_warning(_MISSING.format(automation.latest_version, step, amount)) for step, amount in missing]


def _warning(detail: str, pointer: str | None = None, chain: Sequence[str] = ()) -> dict[str, Any]:
    """Returns a warning as in the API. `pointer`: into the definition; None for the whole automation."""
    return {"pointer": "" if pointer is None else f"/definition{pointer}", "detail": detail, "chain": list(chain)}


def _followed(automation: Automation) -> Mapping[str, Mapping[str, Any]]:
    """Returns published definitions that the draft may start, even indirectly, up to MOST_FOLLOWED."""
    found: dict[str, Mapping[str, Any]] = {}
    newest = [automation.definition]
    for _ in range(MOST_DEPTH):
        keys, beginnings, started = definitions.caused(newest)
        values = {
            "workspace_id": automation.workspace_id,
            "keys": sql.array(keys),
            "beginnings": sql.array(beginnings),
            "started": sql.array(started),
            "known": sql.array([automation.id, *found]),
            "most": max(MOST_FOLLOWED - len(found), 0),
        }
        further = dict(rows(_LISTENERS, values))
        if not further:
            break
        found |= further
        newest = [*further.values()]
    return found


_LISTENERS = """
    WITH heard AS (
        SELECT automation_id FROM automation_listeners
        WHERE workspace_id = %(workspace_id)s AND key = ANY(%(keys)s::text[])
        UNION
        SELECT automation_id FROM unnest(%(beginnings)s::text[]) AS beginning
        JOIN automation_listeners ON workspace_id = %(workspace_id)s AND starts_with(key, beginning)
        UNION
        SELECT unnest(%(started)s::text[])
    )
    SELECT automations.id, automation_versions.definition FROM heard
    JOIN automations ON automations.id = heard.automation_id
    JOIN automation_versions ON automation_versions.automation_id = automations.id
        AND automation_versions.number = automations.version
    WHERE automations.workspace_id = %(workspace_id)s AND automations.status IN ('published', 'paused')
        AND automations.reentry IS DISTINCT FROM 'once' AND automations.id <> ALL(%(known)s::text[])
    ORDER BY automations.id LIMIT %(most)s
"""
