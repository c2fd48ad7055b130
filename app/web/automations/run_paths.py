"""Run paths: reconstructs the path of a run through its version's picture from its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from app.domain.automations.definitions.programs import Program
from app.models.runs import Run, RunStep
from app.web.automations.showings import BranchKey, Mark, RunPath

_UNDER_WAY = "waiting"  # the status of a log entry that a step writes before it is finished
_SAYS = ("branch", "split")  # the kinds of steps whose log entries name the branch that was taken
SENDS = ("send_message", "ask")  # the kinds of steps that send messages


def path_of(run: Run, log: Sequence[RunStep], program: Program) -> RunPath:
    """Returns the run's path as far as the log shows it: older entries may be missing from it."""
    reached = {entry.step for entry in log} | ({run.step} if run.step and run.started_at else set())
    left = {entry.step for entry in log if entry.status != _UNDER_WAY} - ({run.step} if not run.is_finished else set())
    if run.failure:
        left.discard(str(run.failure.get("step")))
    ways = {way for number, entry in enumerate(log) if (way := _way(entry, _next(run, log, number), program))}
    return RunPath(frozenset(reached), frozenset(left), frozenset(ways))


def marks_of(run: Run, log: Sequence[RunStep]) -> dict[str, Mark]:
    """Returns marks by step, linked to the log: where the run is, or failed, or passed repeatedly."""
    times = Counter(entry.step for entry in log if entry.status != _UNDER_WAY)
    last = {entry.step: entry.number for entry in log}
    found = {}
    for step, number in times.items():
        found[step] = Mark(f"{number} times" if number > 1 else "", at=_entry(last[step]))
    if run.failure and run.failure.get("step"):
        step = run.failure["step"]
        found[step] = Mark("Failed", "bad", _entry(last.get(step)))
    elif not run.is_finished and run.step and run.started_at:
        found[run.step] = Mark("Here now", "busy", _entry(last.get(run.step)))
    return found


def sent_again(log: Sequence[RunStep], from_step: str | None) -> int:
    """Counts the messages sent from the first entry of `from_step` on; all if it has no entry."""
    first = next((number for number, entry in enumerate(log) if entry.step == from_step), 0)
    return sum(entry.kind in SENDS and _has_sent(entry) for entry in log[first:])


def _has_sent(entry: RunStep) -> bool:
    """Whether the entry queued a message. An `ask` does so when it starts to wait, with its `input`."""
    detail: Mapping[str, object] = entry.detail
    if entry.kind == "ask":
        return entry.status == _UNDER_WAY and detail.get("input") is not None
    output = detail.get("output")
    return isinstance(output, dict) and "message_id" in output


def _next(run: Run, log: Sequence[RunStep], number: int) -> str | None:
    """Returns the step after the entry; for the last entry, where the run is, None if completed."""
    if number + 1 < len(log):
        return str(log[number + 1].step)
    return None if run.status == "completed" else run.step


def _way(entry: RunStep, following: str | None, program: Program) -> BranchKey | None:
    """Returns the branch taken after the entry; None if the log shows none."""
    step = program.steps.get(entry.step)
    if step is None or not step.inside or entry.status == _UNDER_WAY:
        return None
    output = entry.detail.get("output")
    if step.kind in _SAYS:
        key = {True: "then", False: "else"}.get(output) if isinstance(output, bool) else output
        return (step.id, str(key)) if key in step.inside else None
    if step.kind == "repeat":
        return (step.id, "steps") if following == step.inside["steps"] != step.next else None
    if not isinstance(output, dict):
        return (step.id, None)
    is_answered = any(name in output for name in ("value", "event", "text"))
    is_left = output.get("timed_out") or "taken_over_by" in output or not is_answered
    return (step.id, "otherwise") if is_left else (step.id, None)


def _entry(number: int | None) -> str | None:
    return None if number is None else f"#entry-{number}"
