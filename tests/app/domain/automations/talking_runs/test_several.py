"""Several runs that talk with one contact, and many that talk at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.database import Database
from app.domain.automations import executions
from app.lib import ids
from app.models.runs import Run
from tests.app.domain.automations.talking_runs.steps import (
    ASK,
    REPLY,
    THANK,
    sent,
)
from tests.cast import Api, all_of, in_threads, one
from tests.talks import receive


def test_a_newer_run_takes_over_and_the_older_goes_on_with_otherwise(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    older = start(ASK, REPLY)
    work()

    newer = start(ASK, REPLY, THANK)
    work()
    receive(workspace_id, contact_id, channel_id, "Yes")
    work()

    assert sent() == ["Well?", "Well?", "Are you there?", "Thanks for Yes"]
    assert Run.get_by_id(older).saved["reply"] == {"timed_out": False, "taken_over_by": newer}
    text = one("SELECT detail->>'text' FROM run_steps WHERE run_id = %s AND step = 'reply' AND number = 3", older)
    assert text == f"The run {newer} waits for the reply instead."


def test_of_runs_that_begin_in_one_batch_the_last_waits(
    workspace_id: str, contact_id: str, channel_id: str, start: Callable[..., str], work: Callable[[], None]
) -> None:
    runs = [start(ASK, REPLY, THANK) for _ in range(5)]

    work()

    waiting = all_of("SELECT id FROM runs WHERE waits_for = 'reply'")
    assert len(waiting) == 1
    assert one("SELECT count(*) FROM runs WHERE status = 'completed'") == 4
    assert sent().count("Are you there?") == 4
    assert receive(workspace_id, contact_id, channel_id).run_id == waiting[0]
    assert waiting[0] in runs


def test_of_runs_that_several_workers_begin_one_waits_in_each_conversation(
    api: Api,
    channel_id: str,
    start: Callable[..., str],
    work: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contact_ids = [api.contact(phone=f"+4930123{number:03}")["id"] for number in range(10)]
    for each in contact_ids * 3:
        start(ASK, REPLY, contact_id=each)
    monkeypatch.setattr(executions, "BATCH", 3)

    assert in_threads([work] * 3) == [None] * 3

    assert sorted(all_of("SELECT contact_id FROM runs WHERE waits_for = 'reply'")) == sorted(contact_ids)
    assert one("SELECT count(*) FROM runs WHERE status = 'completed'") == 20
    assert sent().count("Are you there?") == 20


def test_a_batch_of_talking_runs_costs_as_many_statements_as_one(
    api: Api, channel_id: str, start: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Database._execute

    def statements(size: int) -> int:
        for _ in range(size):
            contact_id = api.contact(external_id=ids.new("con"))["id"]
            start(ASK, REPLY, contact_id=contact_id)
            receive(api.workspace_id, contact_id, channel_id)
        seen: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(Database, "_execute", lambda *of: seen.append(of[1]) or real(*of))
            executions.work(api.workspace_id)
        return sum("automation_versions" not in str(statement) for statement in seen)

    statements(1)  # prepares them
    costs = [statements(size) for size in (2, 30)]

    assert one("SELECT count(*) FROM runs WHERE waits_for = 'reply'") == 33
    assert costs[0] == costs[1] < 25
