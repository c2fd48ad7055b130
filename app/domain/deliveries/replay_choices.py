"""Selects the deliveries of a replay: counts them for a preview, or stores them for the replay."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.database import rows, transaction
from app.domain.jobs.parts import LONGEST_SECONDS, be_alone, in_time
from app.lib import ids

# The statuses of a filter that names none: such deliveries are not sent again automatically.
DEFAULT_STATUSES = ("failed", "held")
STATUSES = ("failed", "held", "pending", "delivered")
# After one of these errors, the receiver may have got the delivery nevertheless.
UNCERTAIN = ("timeout", "reset")
# Why a delivery is left out of a replay, or skipped during one. The last four occur only during one.
REASONS: Mapping[str, str] = {
    "endpoint_stopped": "Its endpoint is stopped. Enable that first.",
    "endpoint_deleted": "Its endpoint was deleted.",
    "in_progress": "It is due, or an attempt is under way.",
    "body_gone": "Its body is no longer kept: its retention period is over.",
    "delivered": "It has arrived since the replay began.",
    "sent_meanwhile": "It was sent again since the replay began, by somebody else, and failed again.",
    "discarded": "It was discarded since the replay began.",
    "expired": "The delivery itself is gone: its retention period is over.",
}
# The number of deliveries in a stored part, and the most that one transaction of a replay handles.
PART = 500
SAMPLE = 10
TOO_MANY = (
    f"So many deliveries match that they cannot be counted in {LONGEST_SECONDS} seconds. Narrow the filter, for "
    "instance with `since` and `until`."
)


@dataclass(frozen=True, slots=True)
class Preview:
    """The deliveries that a replay would send now.

    `left_out`: how many more match but cannot be sent, by reason. `sample`: identifiers of the first ones.
    `may_arrive_twice`: how many of `count` may have arrived before. `discardable`: how many match and can be discarded,
    whether or not they can be sent. `as_of`: the time at which all of them were counted.
    """

    count: int
    left_out: Mapping[str, int]
    may_arrive_twice: int
    sample: list[str]
    discardable: int
    as_of: datetime


def whole(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the filter with all its fields: None if not given, but DEFAULT_STATUSES for `statuses`."""
    filters = {name: given.get(name) for name in (*_CONDITIONS, "since", "until")}
    return filters | {"statuses": filters["statuses"] or list(DEFAULT_STATUSES)}


def preview(workspace_id: str, given: Mapping[str, Any], enabling: Collection[str] = ()) -> Preview:
    """Counts exactly the deliveries that would be sent if the endpoints `enabling` were enabled.

    Raises Conflict if counting takes too long, or while another preview of the workspace is running.
    """
    chosen, values = _chosen(workspace_id, given, enabling)
    with transaction(), in_time(TOO_MANY):
        be_alone(workspace_id)
        [(count, twice, sample, left_out, discardable, as_of)] = rows(
            _COUNT.format(chosen=chosen), values | {"sample": SAMPLE}
        )
    return Preview(count, left_out or {}, twice, sample, discardable, as_of)


def untried(workspace_id: str, given: Mapping[str, Any]) -> int:
    """Counts the held deliveries that a filter by cause misses: no attempt gave them a cause.

    Returns 0 if the filter has no cause or does not include held deliveries. Raises Conflict if counting takes too
    long.
    """
    filters = whole(given)
    if "held" not in filters["statuses"] or not any(filters[name] for name in _CAUSES):
        return 0
    chosen, values = _chosen(workspace_id, {**given, **dict.fromkeys(_CAUSES), "statuses": ["held"]})
    with transaction(), in_time(TOO_MANY):
        [(number,)] = rows(_COUNT_UNTRIED.format(chosen=chosen), values)
    return int(number)


def write_down(workspace_id: str, given: Mapping[str, Any], replay_id: str) -> int:
    """Stores the deliveries that a preview would count now, for the replay; returns how many.

    Reads all deliveries in one statement, and so from one snapshot. Raises Conflict if that takes too long.
    """
    chosen, values = _chosen(workspace_id, given)
    with in_time(TOO_MANY):
        [(count,)] = rows(_WRITE_DOWN.format(chosen=chosen), values | {"replay_id": replay_id, "part": PART})
    return int(count)


def matching(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the SQL condition on `deliveries` that the filter stands for, and its values by name."""
    filters = whole(given)
    chosen = {name: sql for name, sql in _CONDITIONS.items() if filters[name] is not None}
    values = {name: filters[name] for name in chosen}
    # Compares the time exactly, and the identifier roughly, so that the index and partition pruning work.
    for name, sign, side in (("since", ">=", -1), ("until", "<", 1)):
        if filters[name] is not None:
            at = datetime.fromisoformat(filters[name])
            chosen[name] = f"deliveries.created_at {sign} %({name})s AND deliveries.id {sign} %({name}_id)s"
            values |= {name: at, f"{name}_id": ids.around("dlv", at, side)}
    return " AND ".join(chosen.values()), values


def _chosen(workspace_id: str, given: Mapping[str, Any], enabling: Collection[str] = ()) -> tuple[str, dict[str, Any]]:
    condition, values = matching(given)
    values |= {"uncertain": list(UNCERTAIN), "enabling": list(enabling), "workspace_id": workspace_id}
    return _CHOSEN.format(condition=condition), values


_CONDITIONS = {
    "endpoint_ids": "deliveries.endpoint_id = ANY(%(endpoint_ids)s)",
    "except_endpoint_ids": "deliveries.endpoint_id <> ALL(%(except_endpoint_ids)s)",
    "statuses": "deliveries.status = ANY(%(statuses)s)",
    "kinds": "deliveries.kind = ANY(%(kinds)s)",
    "error_codes": "deliveries.last_error_code = ANY(%(error_codes)s)",
    "status_codes": "deliveries.last_status = ANY(%(status_codes)s)",
}

# Fields of a filter that select by the last attempt. A delivery without attempts matches none of them.
_CAUSES = ("error_codes", "status_codes")

# The condition for deliveries that can be discarded: they have ended or are held, and no attempt is in progress.
IS_DISCARDABLE = "deliveries.status IN ('failed', 'held') AND (deliveries.leased_until > now()) IS NOT TRUE"

# Looks up each body separately: with a join, the planner might read all events.
_CHOSEN = f"""
    SELECT deliveries.id, deliveries.claim, deliveries.last_error_code,
        deliveries.status = 'delivered' OR deliveries.last_error_code = ANY(%(uncertain)s) AS may_arrive_twice,
        {IS_DISCARDABLE} AS is_discardable,
        CASE WHEN endpoints.state = 'stopped' AND endpoints.id <> ALL(%(enabling)s) THEN 'endpoint_stopped'
            WHEN endpoints.state IS NULL OR endpoints.state = 'deleted' THEN 'endpoint_deleted'
            WHEN deliveries.leased_until > now() OR (
                deliveries.status = 'pending' AND deliveries.next_attempt_at IS NULL) THEN 'in_progress'
            WHEN (SELECT true FROM events WHERE events.id = deliveries.event_id LIMIT 1) IS NULL THEN 'body_gone'
        END AS reason
    FROM deliveries
    LEFT JOIN (SELECT id, state FROM endpoints WHERE workspace_id = %(workspace_id)s) AS endpoints
        ON endpoints.id = deliveries.endpoint_id
    WHERE deliveries.workspace_id = %(workspace_id)s AND {{condition}}
"""

_COUNT = """
    WITH chosen AS MATERIALIZED ({chosen})
    SELECT count(*) FILTER (WHERE reason IS NULL), count(*) FILTER (WHERE reason IS NULL AND may_arrive_twice),
        ARRAY(SELECT id FROM chosen WHERE reason IS NULL ORDER BY id LIMIT %(sample)s),
        (SELECT json_object_agg(reason, number ORDER BY reason) FROM (
            SELECT reason, count(*) AS number FROM chosen WHERE reason IS NOT NULL GROUP BY reason) AS reasons),
        count(*) FILTER (WHERE is_discardable), now()
    FROM chosen
"""

_COUNT_UNTRIED = "SELECT count(*) FROM ({chosen}) AS chosen WHERE last_error_code IS NULL"

_WRITE_DOWN = """
    WITH chosen AS ({chosen}), parts AS (
        INSERT INTO replay_parts (workspace_id, replay_id, number, delivery_ids, claims)
        SELECT %(workspace_id)s, %(replay_id)s, part, array_agg(id ORDER BY id), array_agg(claim ORDER BY id)
        FROM (
            SELECT id, claim, (row_number() OVER (ORDER BY id) - 1) / %(part)s AS part FROM chosen WHERE reason IS NULL
        ) AS numbered
        GROUP BY part
        RETURNING cardinality(delivery_ids) AS size
    )
    SELECT coalesce(sum(size), 0) FROM parts
"""
