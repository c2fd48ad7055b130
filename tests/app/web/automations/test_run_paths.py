"""The way of a run through the picture."""

from __future__ import annotations

from typing import Any

from app.domain.automations.definitions import programs
from app.models.runs import Run, RunStep
from app.web.automations import layouts, run_paths
from app.web.automations.showings import RunPath
from tests.definitions import IS_VIP

MARK = {"id": "mark", "kind": "add_tag", "tag": "vip"}
LATER = {"id": "later", "kind": "wait", "seconds": 60}
FORK = {"id": "fork", "kind": "branch", "if": IS_VIP, "then": [LATER], "else": []}
SEND = {"id": "send", "kind": "send_message", "text": "Hello"}
STEPS = [MARK, FORK, SEND]


def entry(number: int, step: dict[str, Any], status: str = "succeeded", **detail: Any) -> RunStep:
    shown = {"input": None, "output": None, "code": None, "text": ""} | detail
    return RunStep(number=number, step=step["id"], kind=step["kind"], status=status, detail=shown)


def trail(run: Run, *log: RunStep) -> RunPath:
    return run_paths.path_of(run, log, programs.compile({"steps": STEPS}))


def gone(found: RunPath) -> set[tuple[str | None, str | None]]:
    """The lines that the run has gone along, as pairs of steps."""
    return {(edge.after, edge.into) for edge in layouts.draw({"steps": STEPS}, {}).edges if found.has(edge)}


def test_a_run_that_waits_has_reached_its_step_and_not_left_it() -> None:
    run = Run(status="waiting", step="later", started_at=1)
    log = [entry(1, MARK), entry(2, FORK, output=True), entry(3, LATER, "waiting")]

    found = trail(run, *log)

    assert found.reached == {"mark", "fork", "later"}
    assert found.left == {"mark", "fork"}
    assert found.ways == {("fork", "then")}
    assert ("fork", "later") in gone(found) or (None, "later") in gone(found)
    assert (None, "mark") in gone(found)
    assert ("fork", "send") not in gone(found)
    assert run_paths.marks_of(run, log)["later"].word == "Here now"


def test_a_way_without_steps_is_told_by_the_log() -> None:
    run = Run(status="failed", step="send", started_at=1, failure={"code": "no_channel", "step": "send"})
    log = [entry(1, MARK), entry(2, FORK, output=False), entry(3, SEND, "failed")]

    found = trail(run, *log)

    assert found.ways == {("fork", "else")}
    assert "send" in found.reached
    assert "send" not in found.left
    marks = run_paths.marks_of(run, log)
    assert (marks["send"].word, marks["send"].tone, marks["send"].at) == ("Failed", "bad", "#entry-3")
    assert (marks["mark"].word, marks["mark"].at) == ("", "#entry-1")


def test_steps_taken_several_times_say_so() -> None:
    log = [entry(1, MARK), entry(2, MARK)]

    assert run_paths.marks_of(Run(status="completed", step=None), log)["mark"].word == "2 times"


def test_messages_that_would_be_sent_again_are_counted() -> None:
    ask = {"id": "ask", "kind": "ask"}
    sent = {"message_id": "msg_1"}
    log = [
        entry(1, SEND, output=sent),
        entry(2, MARK),
        entry(3, ask, "waiting", input={"text": "Well?"}),
        entry(4, ask, output={"value": "yes"}),
        entry(5, SEND, "failed"),
    ]

    assert run_paths.sent_again(log, None) == 2
    assert run_paths.sent_again(log, "mark") == 1
    assert run_paths.sent_again(log, "unknown") == 2
    assert run_paths.sent_again(log[4:], "send") == 0
