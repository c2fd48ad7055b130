"""Segments: named filters of contacts."""

from __future__ import annotations

from typing import Any, ClassVar

from flask import Response
from marshmallow import fields, post_load

from app import bounds
from app.api.authentication import authorize, caller
from app.api.lists import PageQuery, envelope, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, act
from app.domain.automations import definitions
from app.domain.contacts import contacts
from app.domain.contacts.contacts import ContactSchema
from app.domain.segments import scans, segments
from app.domain.segments.segments import SegmentSchema
from app.errors import Invalid
from app.lib import ids, normalization
from app.lib.schemas import Formatted, RequestBody, ResponseBody, about
from app.models.segments import Segment

blueprint = Blueprint("segments", __name__, description="Filters of contacts that have a name.")


class FilterBody(RequestBody):
    REQUIRED: ClassVar[tuple[str, ...]] = ("filter",)
    filter = fields.Dict(metadata={"$ref": "#/components/schemas/Condition", **segments.ABOUT_FILTER})

    @post_load
    def can_be_judged(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Validates the filter, and returns the fields unchanged.

        Raises Invalid with a pointer to each fault.
        """
        if "filter" in data and (faults := definitions.filter_faults(data["filter"], "/filter")):
            raise Invalid(*faults)
        return data


class SegmentPatch(FilterBody):
    """The fields of a segment to change. None is required."""

    REQUIRED: ClassVar[tuple[str, ...]] = ()
    name = Formatted(normalization.name, metadata={**normalization.NAME_SCHEMA, **segments.ABOUT_NAME})


class SegmentCreate(SegmentPatch):
    REQUIRED = ("name", "filter")


class SegmentCountSchema(ResponseBody):
    count = fields.Integer(metadata=about("How many contacts meet the filter.", example=42))
    is_complete = fields.Boolean(
        metadata=about(
            f"False if {scans.MOST_COUNTED_SECONDS:g} seconds were not enough; then `count` is of the newest contacts.",
            example=True,
        )
    )
    sample = fields.List(fields.Nested(ContactSchema), metadata=about(f"The newest {scans.SAMPLE} of them."))


@reads(blueprint, "/segments", ("automations", "contacts"), SegmentSchema, PageQuery)
def list_segments(query: dict[str, Any]) -> Document:
    """List segments, newest first."""
    return page(Segment, query, segments.represent)


@accepts(blueprint, "POST /segments", "automations", SegmentSchema, SegmentCreate, made=True)
def create_segment(body: dict[str, Any]) -> Response:
    """Create a segment, up to 500 in a workspace."""
    return accept("segments.create", body, ids.new("seg"))


@blueprint.route("/workspaces/<workspace>/segments/count", methods=["POST"])
@authorize("automations", "contacts")
@blueprint.arguments(FilterBody)
@blueprint.response(200, envelope(SegmentCountSchema))
def count_segment(body: dict[str, Any]) -> Response:
    """Count the contacts that match a filter now. Makes no job."""
    workspace_id = caller().workspace_id
    with bounds.reading_segment(workspace_id):
        found = scans.count(workspace_id, body["filter"])
    sample = [contacts.represent(each) for each in found.sample]
    return respond(200, {"data": SegmentCountSchema.of(found, sample=sample)})


shows(
    blueprint,
    "segment",
    ("automations", "contacts"),
    SegmentSchema,
    "Show a segment. `GET contacts?segment_id=` lists its contacts.",
)


@accepts(blueprint, "PATCH /segments/<segment_id>", "automations", SegmentSchema, SegmentPatch)
def update_segment(body: dict[str, Any], segment_id: str) -> Response:
    """Change the given fields of a segment. Automations that use it follow the change."""
    return act("segments.update", segment_id, body)


@accepts(blueprint, "DELETE /segments/<segment_id>", "automations", None)
def delete_segment(segment_id: str) -> Response:
    """Delete a segment.

    Fails with `conflict`, which names it, if a published automation starts runs for it.
    """
    return act("segments.delete", segment_id)
