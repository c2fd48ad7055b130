"""Resources by their type: where they are, and how one is found for the answer to a write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.config import settings
from app.domain import bookings, contacts, deliveries, endpoints, imports, sales, sweeps
from app.errors import NotFound
from app.models.jobs import Job

Represented = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ResourceType:
    """`path` is that of the collection below a workspace."""

    path: str
    find: Callable[[str, str], Represented]


TYPES: Mapping[str, ResourceType] = {
    "contact": ResourceType("contacts", lambda *ids: contacts.represent(contacts.find(*ids))),
    "sale": ResourceType("sales", lambda *ids: sales.represent(sales.find(*ids))),
    "booking": ResourceType("bookings", lambda *ids: bookings.represent(bookings.find(*ids))),
    "endpoint": ResourceType("webhooks/endpoints", lambda *ids: endpoints.represent(endpoints.find(*ids))),
    "delivery": ResourceType("webhooks/deliveries", lambda *ids: deliveries.represent(deliveries.find(*ids))),
    "import": ResourceType("imports", lambda *ids: imports.represent(imports.find(*ids))),
    "sweep": ResourceType("webhooks/sweeps", lambda *ids: sweeps.represent(sweeps.find(*ids))),
}


def represent_job(job: Job) -> Represented:
    resource = None
    if job.resource_id is not None and job.resource_type is not None:
        resource = {"type": job.resource_type, "id": job.resource_id, "url": url(job)}
    document = {
        "id": job.id,
        "kind": job.kind,
        "status": job.status,
        "resource": resource,
        "problem": job.problem,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
    }
    if job.resource_type == "import" and (progress := imports.progress(str(job.resource_id))):
        document["progress"] = progress
    return document


def find(job: Job) -> Represented | None:
    """The resource that the job made or changed; None if it is gone again."""
    assert job.resource_type is not None
    assert job.resource_id is not None
    try:
        return TYPES[job.resource_type].find(job.workspace_id, job.resource_id)
    except NotFound:
        return None


def url(job: Job) -> str:
    """The address of the job's resource."""
    assert job.resource_type is not None
    return _below(job.workspace_id, f"{TYPES[job.resource_type].path}/{job.resource_id}")


def job_url(job: Job) -> str:
    return _below(job.workspace_id, f"jobs/{job.id}")


def _below(workspace_id: str, path: str) -> str:
    return f"{settings().base_url}/api/v1/workspaces/{workspace_id}/{path}"
