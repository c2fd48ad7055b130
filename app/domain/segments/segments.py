"""Segments: named filters of contacts."""

from __future__ import annotations

from marshmallow import fields

from app.database import rows
from app.domain.work.changes import Change, Effect
from app.domain.work.quotas import Quota
from app.errors import Conflict
from app.lib.schemas import ResponseBody, time
from app.models.segments import Segment

QUOTA = Quota(Segment, 500, "segments")
ABOUT_NAME = {"description": "For people; it need not be unique.", "example": "Regulars in Berlin"}
EXAMPLE = {
    "all": [
        {"field": "contact.tags", "is": "contains", "value": "regular"},
        {"field": "contact.last_received_at", "is": "less_than", "days_ago": 60},
    ]
}
ABOUT_FILTER = {"description": "The condition that the contacts meet.", "example": EXAMPLE}


def create(change: Change) -> Effect:
    """Creates the segment. Raises Conflict above the QUOTA."""
    QUOTA.keep(change.workspace_id)
    Segment.insert(id=change.target, workspace_id=change.workspace_id, **change.payload).execute()
    return Effect("made", "segment", change.target)


def update(change: Change) -> Effect:
    """Changes the given fields. Raises NotFound."""
    segment = Segment.find(change.workspace_id, change.target)
    if change.payload:
        Segment.update(**change.payload).where(Segment.id == segment.id).execute()
    return Effect("changed", "segment", segment.id)


def delete(change: Change) -> Effect:
    """Deletes the segment. Raises NotFound; Conflict if a schedule or scheduled broadcast uses it."""
    segment = Segment.find(change.workspace_id, change.target)
    for automation_id, name in rows(_USERS, (segment.id,)):
        raise Conflict(
            f"The automation '{name}' starts runs for this segment. Unpublish it, or publish a version without that"
            " trigger, first.",
            conflicting_automation_id=automation_id,
        )
    for broadcast_id, name in rows(_AWAITING, (segment.id, segment.workspace_id)):
        raise Conflict(
            f"The broadcast '{name}' is scheduled for this segment. Change or abort it first.",
            conflicting_broadcast_id=broadcast_id,
        )
    segment.delete_instance()
    return Effect("deleted", "segment", segment.id)


def find(workspace_id: str, segment_id: str) -> Segment | None:
    """Returns the segment; None if the workspace has none with that id."""
    found: Segment | None = Segment.in_workspace(workspace_id).where(Segment.id == segment_id).first()
    return found


class SegmentSchema(ResponseBody):
    id = fields.String()
    name = fields.String(metadata=ABOUT_NAME)
    filter = fields.Dict(metadata=ABOUT_FILTER)
    created_at = time("When the segment was created.")


represent = SegmentSchema.of

_USERS = """
    SELECT automations.id, automations.name FROM schedules JOIN automations ON automations.id = automation_id
    WHERE segment_id = %s ORDER BY automations.id LIMIT 1
"""
_AWAITING = """
    SELECT id, name FROM broadcasts
    WHERE segment_id = %s AND workspace_id = %s AND state = 'scheduled' ORDER BY id LIMIT 1
"""
