"""Steps of runs that talk, what passes meanwhile, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from app import mailbox
from app.database import rows
from app.domain.triggers import run_states
from app.models.runs import RunStep
from tests.cast import all_of
from tests.talks import receive

ASK: Mapping[str, Any] = {"id": "ask", "kind": "send_message", "text": "Well?"}
THANK: Mapping[str, Any] = {"id": "thank", "kind": "send_message", "text": "Thanks for {{ steps.answer }}"}
REMIND: Mapping[str, Any] = {"id": "remind", "kind": "send_message", "text": "Are you there?"}
PAUSE: Mapping[str, Any] = {"id": "pause", "kind": "wait", "seconds": 60}
REPLY: Mapping[str, Any] = {
    **{"id": "reply", "kind": "wait_for_reply", "timeout_seconds": 60, "save_as": "answer"},
    "otherwise": [REMIND, {"id": "end", "kind": "stop"}],
}
ROUNDS = 40


def time_passes() -> None:
    """The time comes that waiting runs wait for."""
    rows("UPDATE runs SET resume_at = now() WHERE resume_at IS NOT NULL")
    mailbox.wake(run_states.WAITING)


def sent() -> list[str]:
    return all_of("SELECT text FROM messages WHERE direction = 'out' ORDER BY id")


def log_of(run_id: str) -> list[tuple[str, str]]:
    logged = RunStep.select().where(RunStep.run_id == run_id).order_by(RunStep.number)
    return [(entry.step, entry.status) for entry in logged]


def replying(workspace_id: str, channel_id: str, contact_ids: list[str]) -> list[Callable[[], None]]:
    """Two who write at the same time, each for half of the contacts."""

    def reply(contact_ids: list[str]) -> None:
        for each in contact_ids:
            receive(workspace_id, each, channel_id, "Yes")

    return [partial(reply, contact_ids[::2]), partial(reply, contact_ids[1::2])]
