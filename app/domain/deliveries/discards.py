"""Discards: cancels failed and held deliveries that need not be sent any more, many in one job.

A discard covers only deliveries that its preview counted: they had failed, or were held, by the preview's time `as_of`.
Retries fail later under the identifiers of older deliveries, so a bound by identifier alone would not do.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from marshmallow import fields

from app.database import count, now
from app.domain.deliveries import replay_choices
from app.domain.deliveries.replay_choices import IS_DISCARDABLE, TOO_MANY, matching
from app.domain.jobs import parts
from app.domain.work.changes import Change, Effect
from app.lib import ids
from app.lib.schemas import ResponseBody, about, time


def discard(change: Change) -> Effect | None:
    """Cancels the next part of the failed and held deliveries that `filter` selects.

    The deliveries must already have failed, or been held, at `as_of`. Returns None while there are more. Skips a
    delivery with an attempt in progress. Adds one audit entry, with the reason and the number. Raises Busy if another
    transaction has locked the next delivery.
    """
    matches, values = matching(change.payload["filter"])
    at = datetime.fromisoformat(change.payload["as_of"])
    values |= {"workspace_id": change.workspace_id, "as_of": at, "last_id": ids.around("dlv", at, 1)}
    able = f"{matches} AND {IS_DISCARDABLE} AND {_WAS_SO}"

    def cancel(delivery_ids: list[str]) -> int:
        return count(_CANCEL.format(able=able), {**values, "ids": delivery_ids})

    chosen = parts.Rows("deliveries", _TOTAL.format(able=able), _FOLLOWING.format(able=able), values, TOO_MANY)
    if not parts.go_on(change, chosen, cancel):
        return None
    assert change.cause.job_id is not None
    return Effect("made", "job", change.cause.job_id)


def preview(workspace_id: str, filters: dict[str, Any]) -> dict[str, Any]:
    """Counts the deliveries that a discard would cancel now, as in the API. Raises Conflict."""
    found = replay_choices.preview(workspace_id, filters)
    return DiscardPreviewSchema.of(found, count=found.discardable)


def payload(filters: dict[str, Any], reason: str, as_of: datetime | None) -> dict[str, Any]:
    """Returns the job's payload. `as_of`: None means now, and so does a time in the future."""
    present = now()
    return {"filter": filters, "reason": reason, "as_of": min(as_of or present, present).isoformat()}


class DiscardPreviewSchema(ResponseBody):
    count = fields.Integer(metadata=about("How many would be discarded; exact."))
    as_of = time("When this was so. Give it to discard no others.")


_WAS_SO = """
    deliveries.created_at <= %(as_of)s AND NOT EXISTS (
        SELECT FROM attempts
        WHERE delivery_id = deliveries.id AND number = deliveries.attempts AND recorded_at > %(as_of)s)
    AND (deliveries.status = 'failed' OR NOT EXISTS (
        SELECT FROM endpoints WHERE endpoints.id = deliveries.endpoint_id AND stopped_at > %(as_of)s))
"""

_TOTAL = """
    SELECT count(*) FROM deliveries
    WHERE workspace_id = %(workspace_id)s AND status <> 'delivered' AND id < %(last_id)s AND {able}
"""

# Walks the index deliveries_status_page once for each status. Examines a bounded number of rows, so that a part takes
# no longer if only a few of a million deliveries match.
_OF_STATUS = """
    (SELECT * FROM deliveries
    WHERE workspace_id = %(workspace_id)s AND status = '{status}' AND id > %(after)s AND id < %(last_id)s
    ORDER BY id LIMIT %(looked_at)s)
"""
_FOLLOWING = f"""
    WITH looked_at AS MATERIALIZED (
        SELECT id, {{able}} AS is_chosen
        FROM ({_OF_STATUS.format(status="failed")} UNION ALL {_OF_STATUS.format(status="held")}) AS deliveries
        ORDER BY id LIMIT %(looked_at)s
    )
    SELECT (SELECT max(id) FROM looked_at), (SELECT count(*) FROM looked_at),
        ARRAY(SELECT id FROM looked_at WHERE is_chosen ORDER BY id LIMIT %(most)s)
"""

_CANCEL = """
    UPDATE deliveries SET status = 'cancelled', due_at = NULL, next_attempt_at = NULL
    WHERE id = ANY(%(ids)s) AND {able}
"""
