"""What tests of replays share: making them, working on them, and what became of their deliveries."""

from __future__ import annotations

from typing import Any

from app.lib import ids
from app.models.endpoints import Endpoint
from app.models.jobs import Job
from app.models.replays import Replay, ReplayRow
from tests.cast import Api, accept, all_of, apply, make_endpoint, replay


def another(api: Api) -> Endpoint:
    identifier, _ = make_endpoint(api.workspace_id, "https://shop.example/hooks")
    return Endpoint.get_by_id(identifier)


def begin(workspace_id: str, *, per_second: int | None = None, canary: bool = False, **chosen: Any) -> str:
    """The identifier of a replay that has begun and that nobody has worked on."""
    replay_id = ids.new("rpl")
    payload = {"filter": chosen, "per_second": per_second, "canary": canary}
    job = accept(workspace_id, "replays.create", payload, replay_id)
    apply(workspace_id)
    assert Job.get_by_id(job.id).problem is None
    return replay_id


def replayed(workspace_id: str, **options: Any) -> Replay:
    """A replay that has been worked on until it ended or waits."""
    replay_id = begin(workspace_id, **options)
    replay(replay_id)
    return shown(replay_id)


def shown(replay_id: str) -> Replay:
    found: Replay = Replay.get_by_id(replay_id)
    return found


def move(replay_id: str, verb: str) -> dict[str, Any] | None:
    """What is wrong with pausing, continuing or aborting it."""
    workspace_id = shown(replay_id).workspace_id
    job = accept(workspace_id, f"replays.{verb}", {}, replay_id)
    apply(workspace_id)
    problem: dict[str, Any] | None = Job.get_by_id(job.id).problem
    return problem


def progress(found: Replay) -> tuple[str, int, int, int]:
    return found.state, found.count, found.sent, found.skipped


def outcomes(replay_id: str) -> dict[str, str | None]:
    """The reason of each row that was skipped, None for each that was sent, by delivery."""
    found = list(ReplayRow.select().where(ReplayRow.replay_id == replay_id).order_by(ReplayRow.number))
    assert [row.number for row in found] == list(range(1, len(found) + 1))
    assert [row.outcome for row in found] == ["skipped" if row.reason else "sent" for row in found]
    assert [row.sent_as is None for row in found] == [row.reason is not None for row in found]
    return {row.delivery_id: row.reason for row in found}


def pending() -> list[str]:
    return all_of("SELECT id FROM deliveries WHERE status = 'pending' AND due_at IS NOT NULL ORDER BY due_at")
