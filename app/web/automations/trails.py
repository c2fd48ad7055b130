"""Trails: the way of a run through the picture of its version, from its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from app.domain.automations.definitions.programs import Program
from app.models.runs import Run, RunStep
from app.web.automations.showings import Mark, Trail, Way

# Entries of the log that a step may have while it goes on: it has not left the step with these.
_UNDER_WAY = "waiting"
# Kinds of steps whose entries say which way was taken.
_SAYS = ("branch", "split")
_SENDS = ("send_message", "ask")


def trail_of(run: Run, log: Sequence[RunStep], program: Program) -> Trail:
    """The steps that the run has reached and left, and the ways that it took, as far as the log shows them."""
    reached = {entry.step for entry in log} | ({run.step} if run.step and run.started_at else set())
    left = {entry.step for entry in log if entry.status != _UNDER_WAY} - ({run.step} if not run.is_finished else set())
    if run.failure:
        left.discard(str(run.failure.get("step")))
    ways = {way for number, entry in enumerate(log) if (way := _way(entry, _next(run, log, number), program))}
    return Trail(frozenset(reached), frozenset(left), frozenset(ways))


def marks_of(run: Run, log: Sequence[RunStep]) -> dict[str, Mark]:
    """What is to be said of each step of the picture: that the run is there, or failed there, or how often it came."""
    times = Counter(entry.step for entry in log if entry.status != _UNDER_WAY)
    last = {entry.step: entry.number for entry in log}
    found = {}
    for step, number in times.items():
        found[step] = Mark(f"{number} times" if number > 1 else "", "", _entry(last[step]))
    if run.failure and run.failure.get("step"):
        step = run.failure["step"]
        found[step] = Mark("Failed", "bad", _entry(last.get(step)))
    elif not run.is_finished and run.step and run.started_at:
        found[run.step] = Mark("Here now", "busy", _entry(last.get(run.step)))
    return found


def sent_again(log: Sequence[RunStep], from_step: str | None) -> int:
    """How many messages of the log were sent in that step or after it, the first time; all of them for None."""
    first = next((number for number, entry in enumerate(log) if entry.step == from_step), 0)
    return len([entry for entry in log[first:] if entry.kind in _SENDS and _has_sent(entry)])


def _has_sent(entry: RunStep) -> bool:
    """Whether the entry says that a message was queued: an `ask` waits then, and is logged with what it asked."""
    detail: Mapping[str, object] = entry.detail
    if entry.kind == "ask":
        return entry.status == _UNDER_WAY and detail.get("input") is not None
    output = detail.get("output")
    return isinstance(output, dict) and "message_id" in output


def _next(run: Run, log: Sequence[RunStep], number: int) -> str | None:
    """The step that came after the entry; where the run is, for the last one."""
    if number + 1 < len(log):
        return str(log[number + 1].step)
    return None if run.status == "completed" else run.step


def _way(entry: RunStep, following: str | None, program: Program) -> Way | None:
    """The way on from the step of the entry; None if it has none, or the log does not tell which."""
    step = program.steps.get(entry.step)
    if step is None or not step.inside or entry.status == _UNDER_WAY:
        return None
    output = entry.detail.get("output")
    if step.kind in _SAYS:
        key = {True: "then", False: "else"}.get(output) if isinstance(output, bool) else output
        return (step.id, str(key)) if key in step.inside else None
    if step.kind == "repeat":
        return (step.id, "steps") if following == step.inside["steps"] != step.next else None
    taken = isinstance(output, dict) and (output.get("timed_out") or "taken_over_by" in output or not _answered(output))
    return (step.id, "otherwise") if taken else (step.id, None)


def _answered(output: Mapping[str, object]) -> bool:
    return "value" in output or "event" in output or "text" in output


def _entry(number: int | None) -> str | None:
    return None if number is None else f"#entry-{number}"
