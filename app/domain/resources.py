"""Resource types: the address and representation of each, for jobs and responses to writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from marshmallow import fields, validate

from app.config import settings
from app.domain.automations import automations, runs
from app.domain.bodies.jobs import WHY_DISCARDED
from app.domain.broadcasts import broadcasts
from app.domain.channels import channels
from app.domain.contacts import bookings, contacts, sales
from app.domain.conversations import conversations, messages, notes
from app.domain.deliveries import deliveries, replays, sweeps
from app.domain.jobs import parts
from app.domain.lifecycle import imports, merges
from app.domain.lifecycle.imports import ProgressSchema
from app.domain.macros import macros, saved_replies
from app.domain.people import members, workspaces
from app.domain.segments import segments
from app.domain.triggers import run_states
from app.domain.verbs import VERBS
from app.domain.webhooks import endpoints
from app.errors import NotFound
from app.lib.schemas import ResponseBody, about, time
from app.models.automations import Automation
from app.models.bookings import Booking
from app.models.broadcasts import Broadcast
from app.models.channels import Channel
from app.models.conversations import Conversation, Message
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from app.models.imports import Import
from app.models.jobs import STATUSES, Job
from app.models.macros import Macro
from app.models.notes import Note
from app.models.replays import Replay
from app.models.sales import Sale
from app.models.saved_replies import SavedReply
from app.models.segments import Segment
from app.models.sweeps import Sweep

Represented = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A type of resource that a job can name.

    `path`: where its collection is below the workspace's address; None for the workspace itself. `find` takes the
    identifiers of the workspace and the resource, returns the row, and raises NotFound.
    """

    path: str | None
    find: Callable[[str, str], Any]
    represent: Callable[[Any], Represented]


TYPES: Mapping[str, ResourceType] = {
    "contact": ResourceType("contacts", contacts.find, merges.represent),
    "sale": ResourceType("sales", Sale.find, sales.represent),
    "booking": ResourceType("bookings", Booking.find, bookings.represent),
    "endpoint": ResourceType("webhooks/endpoints", Endpoint.find, endpoints.represent),
    "delivery": ResourceType("webhooks/deliveries", Delivery.find, deliveries.represent),
    "import": ResourceType("imports", Import.find, imports.represent),
    "sweep": ResourceType("webhooks/sweeps", Sweep.find, sweeps.represent),
    "replay": ResourceType("webhooks/replays", Replay.find, replays.represent),
    "automation": ResourceType("automations", Automation.find, automations.represent),
    "segment": ResourceType("segments", Segment.find, segments.represent),
    "broadcast": ResourceType("broadcasts", Broadcast.find, broadcasts.represent),
    "run": ResourceType("runs", runs.find, run_states.represent),
    "conversation": ResourceType("conversations", Conversation.find, conversations.represent),
    "message": ResourceType("messages", Message.find, messages.represent),
    "note": ResourceType("notes", Note.find, notes.represent),
    "saved_reply": ResourceType("saved-replies", SavedReply.find, saved_replies.represent),
    "macro": ResourceType("macros", Macro.find, macros.represent),
    "member": ResourceType("members", members.find, members.represent),
    "channel": ResourceType("channels", Channel.find, channels.represent),
    "job": ResourceType("jobs", Job.find, lambda job: represent_job(job)),
    "workspace": ResourceType(None, lambda id, _: workspaces.find(id), workspaces.represent),
}
# Columns about the replay or discard of a failed job, shown if they have a value. `replayed_from` is on the new job.
AFTERMATH = ("replayed_from", "replayed_as", "discarded_at", "discard_reason")
_OTHER_JOB = "job_01kaj5bd40e6rr3f5y2kq0w9xz"


class ResourceSchema(ResponseBody):
    type = fields.String()
    id = fields.String()
    url = fields.URL(require_tld=False, metadata={"format": "uri"})


class JobSchema(ResponseBody):
    OPTIONAL = ("progress", *AFTERMATH)
    object = fields.String(metadata={"const": "job", "description": "Tells a job from a resource.", "example": "job"})
    id = fields.String()
    kind = fields.String(validate=validate.OneOf(list(VERBS)))
    status = fields.String(validate=validate.OneOf(STATUSES))
    resource = fields.Nested(
        ResourceSchema,
        allow_none=True,
        metadata=about("What the write created or changed; null if that is not known until the job ends."),
    )
    problem = fields.Dict(
        allow_none=True,
        metadata=about(
            "The problem document of a job that failed.", allOf=[{"$ref": "#/components/schemas/Problem"}], example=None
        ),
    )
    progress = fields.Nested(
        ProgressSchema, metadata=about("Only imports and discards of deliveries have it, once they have begun.")
    )
    replayed_from = fields.String(metadata=about("Only for a replay: the job that failed.", example=_OTHER_JOB))
    replayed_as = fields.String(metadata=about("Only if it was replayed: the new job.", example=_OTHER_JOB))
    discarded_at = fields.DateTime(metadata=about("Only if it was discarded: when."))
    discard_reason = fields.String(metadata=about("Only if it was discarded: why.", example=WHY_DISCARDED))
    created_at = time("When the write was accepted.")
    started_at = time("When a worker first claimed the job.", allow_none=True)
    finished_at = time("When the job ended.", allow_none=True)


def represent_job(job: Job) -> Represented:
    """Returns the job as the API shows it, with the progress of an import or of a bulk discard."""
    resource = None
    if job.resource_id is not None and job.resource_type is not None:
        resource = {"type": job.resource_type, "id": job.resource_id, "url": url(job)}
    document = JobSchema.of(job, object="job", resource=resource)
    aftermath = {name: getattr(job, name) for name in AFTERMATH}
    document |= {name: value for name, value in aftermath.items() if value is not None}
    if progress := _progress(job):
        document["progress"] = progress
    return document


def _progress(job: Job) -> Represented | None:
    if job.resource_type == "import":
        return imports.progress(str(job.resource_id))
    found = parts.progress_of(job)
    return {"total": found.count, "done": found.done, "failed": 0} if found and found.count is not None else None


def find(job: Job) -> Represented | None:
    """Returns the resource that the job created or changed; None if it has been deleted since."""
    assert job.resource_type is not None
    assert job.resource_id is not None
    kind = TYPES[job.resource_type]
    try:
        return kind.represent(kind.find(job.workspace_id, job.resource_id))
    except NotFound:
        return None


def url(job: Job) -> str:
    """Returns the API address of the job's resource. The job must have a resource type."""
    assert job.resource_type is not None
    path = TYPES[job.resource_type].path
    return _below(job.workspace_id, f"/{path}/{job.resource_id}" if path else "")


def job_url(job: Job) -> str:
    """Returns the API address of the job itself."""
    return _below(job.workspace_id, f"/jobs/{job.id}")


def _below(workspace_id: str, path: str) -> str:
    return f"{settings().base_url}/api/v1/workspaces/{workspace_id}{path}"
