"""Automations: definitions, their publication, and control over their runs."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any

from flask import Response, request
from marshmallow import fields, post_load, validate

from app import bounds
from app.api.authentication import caller
from app.api.lists import PageQuery, page
from app.api.parsing.blueprints import Blueprint
from app.api.responses import respond
from app.api.routes import Document, accepts, reads, shows
from app.api.writes import accept, act, is_dry_run
from app.domain.automations import automations, definitions, moves, version_counts
from app.domain.automations.automations import AutomationSchema, AutomationVersionSchema
from app.domain.automations.version_counts import VersionCountsSchema
from app.domain.bodies.bulk_runs import CancelledRunsSchema, CancelRunsBody, MovedRunsSchema, MoveRunsBody
from app.domain.contacts import contacts
from app.errors import AutomationNotPublished, Invalid, NotFound
from app.lib import ids, normalization
from app.lib.schemas import Formatted, Query, RequestBody, StrictInteger, Whole, about, time_field
from app.models.automations import Automation, AutomationVersion

blueprint = Blueprint("automations", __name__, description="Steps that are taken for a contact when something happens.")

# Checking a body of this size takes at most 25 ms, as long as other requests. Larger bodies are checked one at a time.
_LARGE_BYTES = 4 * 1024


class AutomationPatch(RequestBody):
    """The fields of an automation to change. None is required."""

    name = Formatted(normalization.name, metadata={**normalization.NAME_SCHEMA, **automations.ABOUT_NAME})
    definition = fields.Dict(metadata={"$ref": "#/components/schemas/Definition", "example": automations.EXAMPLE})
    reentry = fields.String(
        allow_none=True, validate=validate.OneOf(automations.REENTRY), metadata=automations.ABOUT_REENTRY
    )
    exits = fields.List(
        fields.Dict(metadata={"$ref": "#/components/schemas/Trigger"}),
        validate=validate.Length(max=20),
        metadata=automations.ABOUT_EXITS,
    )
    goal = fields.Raw(
        allow_none=True,
        metadata={"anyOf": [{"$ref": "#/components/schemas/Goal"}, {"type": "null"}], **automations.ABOUT_GOAL},
    )

    @post_load
    def can_run(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Validates that the definition can run, and returns the fields unchanged.

        Raises Invalid, with a pointer to each fault, and Overloaded.
        """
        is_large = len(request.get_data()) > _LARGE_BYTES
        with bounds.alone(caller().workspace_id) if is_large else nullcontext():
            faults = [
                *(definitions.faults(data["definition"], "/definition") if "definition" in data else ()),
                *(definitions.exit_faults(data["exits"], "/exits") if "exits" in data else ()),
                *(definitions.goal_faults(data["goal"], "/goal") if data.get("goal") is not None else ()),
            ]
        if faults:
            raise Invalid(*faults)
        return data


class AutomationCreate(AutomationPatch):
    REQUIRED = ("name", "definition")


class RestoreBody(RequestBody):
    version = StrictInteger(
        required=True, validate=validate.Range(1, 999_999_999), metadata=about("The version.", example=1)
    )


class CountsQuery(Query):
    version = Whole(
        validate=validate.Range(1, 999_999_999), metadata=about("The version; else the published one, or the latest.")
    )
    since = time_field(
        "of runs created at this time or later: a full hour, or midnight (UTC) if it is older than a week."
    )
    until = time_field("of runs created before this time, which has the same form.")


@reads(blueprint, "/automations", "automations", AutomationSchema, PageQuery)
def list_automations(query: dict[str, Any]) -> Document:
    """List automations, newest first."""
    found = page(Automation, query, lambda automation: automation)
    return found | {"data": automations.represent_all(found["data"])}


@accepts(blueprint, "POST /automations", "automations", AutomationSchema, AutomationCreate, made=True)
def create_automation(body: dict[str, Any]) -> Response:
    """Create an automation as a draft, up to 1,000 in a workspace."""
    return accept("automations.create", body, ids.new("aut"))


shows(blueprint, "automation", "automations", AutomationSchema, "Show an automation.")


@accepts(blueprint, "PATCH /automations/<automation_id>", "automations", AutomationSchema, AutomationPatch)
def update_automation(body: dict[str, Any], automation_id: str) -> Response:
    """Change the given fields of an automation.

    `definition` changes the draft, which takes effect once it is published. The other fields take effect at once.
    """
    return act("automations.update", automation_id, body)


@accepts(blueprint, "DELETE /automations/<automation_id>", "automations", None)
def delete_automation(automation_id: str) -> Response:
    """Delete an automation.

    Its unfinished runs are cancelled. The logs of its runs can still be read.
    """
    return act("automations.delete", automation_id)


@reads(blueprint, "/automations/<automation_id>/versions", "automations", AutomationVersionSchema, PageQuery)
def list_versions_of_automation(query: dict[str, Any], automation_id: str) -> Document:
    """List the published versions of an automation, newest first."""
    automation = Automation.find(caller().workspace_id, automation_id)
    found = AutomationVersion.select().where(AutomationVersion.automation_id == automation.id)
    return page(AutomationVersion, query, automations.represent_version, found)


@reads(
    blueprint,
    "/automations/<automation_id>/versions/<version>",
    "automations",
    AutomationVersionSchema,
    parameters=[{"name": "version", "in": "path", "description": "The version.", "example": "1"}],
)
def show_version_of_automation(automation_id: str, version: str) -> Document:
    """Show a published version of an automation."""
    automation = Automation.find(caller().workspace_id, automation_id)
    found = automations.find_version(automation, int(version)) if re.fullmatch("[0-9]{1,9}", version) else None
    if found is None:
        raise NotFound(f"This automation has no version {version}.")
    return automations.represent_version(found)


@reads(blueprint, "/automations/<automation_id>/counts", "automations", VersionCountsSchema, CountsQuery)
def show_counts_of_automation(query: dict[str, Any], automation_id: str) -> Document:
    """Count the runs of a version, by status and by step.

    With `since` or `until`, only runs created in that time are counted, with everything that they have done since.
    Counts by time are kept for HISTORY_RETENTION_DAYS, others forever. Runs older than this feature are left out.
    """
    automation = Automation.find(caller().workspace_id, automation_id)
    return version_counts.read(automation, **query)


@accepts(blueprint, "POST /automations/<automation_id>/restore", "automations", AutomationSchema, RestoreBody)
def restore_automation(body: dict[str, Any], automation_id: str) -> Response:
    """Make a published version the draft again. What is published stays as it is."""
    return act("automations.restore", automation_id, body)


@accepts(blueprint, "POST /automations/<automation_id>/publish", "automations", AutomationSchema)
def publish_automation(automation_id: str) -> Response:
    """Publish the draft as the next version. New runs use it; existing runs keep theirs.

    A paused automation stays paused. If automations would start each other in a loop, the write fails with `conflict`,
    and if the draft names an automation or a segment that does not exist, with `validation-failed`.
    """
    return act("automations.publish", automation_id)


@accepts(blueprint, "POST /automations/<automation_id>/unpublish", "automations", AutomationSchema)
def unpublish_automation(automation_id: str) -> Response:
    """Refuse further starts; existing runs continue."""
    return act("automations.unpublish", automation_id)


@accepts(blueprint, "POST /automations/<automation_id>/pause", "automations", AutomationSchema)
def pause_automation(automation_id: str) -> Response:
    """Hold the runs of a published automation at their next step. Starts are still accepted."""
    return act("automations.pause", automation_id)


@accepts(blueprint, "POST /automations/<automation_id>/resume", "automations", AutomationSchema)
def resume_automation(automation_id: str) -> Response:
    """Resume the runs of a paused automation."""
    return act("automations.resume", automation_id)


@accepts(blueprint, "POST /automations/<automation_id>/move-runs", "automations", AutomationSchema, MoveRunsBody)
@blueprint.alt_response(
    200,
    schema=MovedRunsSchema,
    description="The result of a dry run; with `Prefer: wait=N`, if the write ended in time, the automation.",
    success=True,
)
def move_runs_of_automation(body: dict[str, Any], automation_id: str) -> Response:
    """Move runs of a version to the published one, or count them with `dry_run`.

    A run is moved if it waits in a step that the published version has, too, with the same identifier and kind. The
    wait continues, followed by the published version's steps. All other runs keep their version.
    """
    automation = Automation.find(caller().workspace_id, automation_id)
    if automation.version is None:
        raise AutomationNotPublished
    if is_dry_run(body):
        count, kept = moves.count(automation, body["from_version"], automation.version)
        return respond(200, {"data": {"count": count, "kept": kept}})
    return act("automations.move_runs", automation_id, body | {"to_version": automation.version})


@accepts(
    blueprint,
    "POST /automations/<automation_id>/cancel-runs",
    "automations",
    AutomationSchema,
    CancelRunsBody,
    required=False,
)
@blueprint.alt_response(
    200,
    schema=CancelledRunsSchema,
    description="The result of a dry run; with `Prefer: wait=N`, if the write ended in time, the automation.",
    success=True,
)
def cancel_runs_of_automation(body: dict[str, Any], automation_id: str) -> Response:
    """Cancel the unfinished runs that exist now and match, or count them with `dry_run`."""
    workspace_id = caller().workspace_id
    if "contact_id" in body:
        contacts.find_named(workspace_id, body["contact_id"])
    if is_dry_run(body):
        return respond(200, {"data": {"count": automations.count_runs(workspace_id, automation_id, body)}})
    return act("automations.cancel_runs", automation_id, CancelRunsBody.as_text(body) | {"before": ids.new("run")})
