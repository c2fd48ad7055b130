"""The body that changes a member's availability and capacity."""

from __future__ import annotations

from marshmallow import fields, validate

from app.domain.assignment import member_changes
from app.domain.people.members import AVAILABILITIES
from app.lib.schemas import RequestBody, StrictBoolean, StrictInteger, about


class MemberPatch(RequestBody):
    """A member's availability and capacity, which limit `balanced` assignment."""

    availability = fields.String(
        validate=validate.OneOf(AVAILABILITIES),
        metadata=about("Whether channels with `balanced` assignment give them conversations.", example="away"),
    )
    capacity = StrictInteger(
        allow_none=True,
        validate=validate.Range(0, member_changes.MOST_CAPACITY),
        metadata=about("How many open conversations the rule assigns at most; null: no limit.", example=20),
    )
    reassign = StrictBoolean(
        metadata=about(
            "Only with `away`, and true if it is left out: their conversations whose contact waits for an answer, on "
            "channels with `balanced` assignment, go to others.",
            example=False,
        )
    )
