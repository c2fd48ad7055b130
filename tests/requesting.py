"""What tests of runs' requests share: runs that wait for a response, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from app import database
from app.lib import ids
from app.models.runs import Run, RunRequest


def make_request(workspace_id: str, address: str = "https://shop.example/", **request: Any) -> tuple[str, str]:
    """A run that waits for the response to a request; returns the identifiers of both. `request`: its other members."""
    run = Run(
        id=ids.new("run"),
        workspace_id=workspace_id,
        automation_id=ids.new("aut"),
        version=1,
        contact_id=ids.new("con"),
        status="running",
        step="call",
        wait=3,
        waits_for="response",
        due_at=None,
        trace_id="trace-1",
        created_at=database.now(),
    )
    Run.insert(run.__data__).execute()
    request_id = ids.new("req")
    RunRequest.insert(
        id=request_id,
        workspace_id=workspace_id,
        run_id=run.id,
        wait=3,
        key=uuid4(),
        request={"method": "POST", "address": address, "headers": {}, "body": None} | request,
        due_at=database.now(),
    ).execute()
    return run.id, request_id


def answer_of(run_id: str) -> Mapping[str, Any] | None:
    """The answer that the run has got."""
    answer: Mapping[str, Any] | None = Run.get_by_id(run_id).answer
    return answer
