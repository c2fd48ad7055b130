"""Lists the contacts of a segment.

The search for contacts has a time limit, so a page may have only a few.
"""

from __future__ import annotations

from collections.abc import Mapping

from flask import request

from app import bounds
from app.domain.segments import scans, segments
from app.errors import Fault, Invalid, Overloaded
from app.lib import ids
from app.models.segments import Segment
from app.web import lists
from app.web.access import workspace_id


def page_of(segment_id: str, wanted: Mapping[str, str]) -> lists.Page:
    """Returns the segment's contacts that match the filters, newest first. Raises Invalid."""
    segment = segments.find(workspace_id(), segment_id)
    if segment is None:
        raise Invalid(Fault("/segment_id", "There is no such segment in this workspace."))
    after = request.args.get("after")
    after = after if after and ids.is_id(after, "con") else None
    try:
        with bounds.reading_segment(workspace_id()):
            found, next_id = scans.page(workspace_id(), segment.filter, wanted, after, lists.ROWS)
    except Overloaded as error:
        raise Invalid(Fault("/segment_id", error.detail)) from error
    next_address = lists.address(after=next_id) if next_id else None
    return lists.Page(found, next_address, lists.address() if after else None)


def choices() -> list[tuple[str, str]]:
    """Returns the segments as options of a select."""
    found = Segment.in_workspace(workspace_id()).order_by(Segment.id.desc()).limit(segments.QUOTA.most)
    return [("", "All contacts"), *((each.id, each.name) for each in found)]
