"""Interpreter: takes a run through its program's steps, in memory, until it waits or ends."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from app import bounds, mailbox
from app.database import database
from app.domain.automations import http_requests
from app.domain.automations.counts import WARNED
from app.domain.automations.definitions.programs import Program
from app.domain.automations.steps import STEP_KINDS
from app.domain.automations.steps.base import FailureCode, Outcome, Step, StepContext, StepFailed, Stop, Wait
from app.domain.triggers import run_endings, run_states
from app.domain.work.units import Unit
from app.errors import BellhopError
from app.lib import ids
from app.lib.templates import Budget
from app.models.runs import Run, RunRequest, RunStep

# The most steps that a run takes in one transaction.
MOST_AT_ONCE = 50
MOST_UNBROKEN = 250  # the most steps without a wait between them; the next one fails the run
MOST_STEPS = 10_000
# The most warnings in one log entry, and the most characters of a name in a warning.
MOST_WARNINGS, LONGEST_NAME = 10, 200
# After these waits, the step starts over; after all others, it resumes.
_ANEW = ("quiet_hours", "member", "file")


class Interpreter(StepContext):
    """Executes one run. It is the `StepContext` of every step that the run takes."""

    def __init__(self, unit: Unit, run: Run, automation_name: str, *, is_simulated: bool = False) -> None:
        super().__init__(unit, run, is_simulated=is_simulated)
        self.taken: list[tuple[str, str]] = []  # the kind and status of each log entry
        self.ended_as: str | None = None
        self.has_begun = False  # whether the run began in this transaction
        self._automation_name = automation_name

    def go(self, program: Program) -> None:
        """Takes steps until the run waits, ends, or has taken MOST_AT_ONCE. Puts the run into the unit.

        In a unit that has run for long, takes only one step.
        """
        self._talks = program.talks and not self.is_simulated
        if self.run.started_at is None:
            self._start(program)
        while True:
            if self.run.step is None:
                self._finish("completed")
                return
            step = program.steps[self.run.step]
            # An event right after the previous step must count, so a wait for an event starts at once.
            is_enough = self.taken and (len(self.taken) >= MOST_AT_ONCE or self.unit.is_long)
            if is_enough and step.kind != "wait_for_event":
                break
            if not self._take(step):
                return
        self._put(status="running", due_at=self.now)
        if not self.is_simulated:
            run_states.ring(self.run.workspace_id)

    def hold(self) -> None:
        """Holds the run at its position while its automation is paused."""
        self._put(status="held", reason="pause", due_at=None)

    def fail(self, code: FailureCode, text: str) -> None:
        """Fails the run before it takes its next step. The failure counts for that step."""
        if self.run.step is not None and self.run.waits_for is None:
            self._count("entered")
        self._fail(code, text)

    def _start(self, program: Program) -> None:
        # A run that replays another may start at a later step.
        self.run.step = self.run.step or program.first
        self.run.started_at = self.now
        self.has_begun = True
        started = self.run.altered(status="running")
        run_states.record(self.unit, started, "automation.started", self._automation_name)

    def _take(self, step: Step) -> bool:
        """Takes or resumes a step; returns whether the run continues."""
        self.step = step
        self._budget = Budget(bounds.COMPUTING_PER_STEP.most)
        resumes = self.run.waits_for is not None and self.run.waits_for not in _ANEW
        self._count(*("entered", 1) if self.run.waits_for is None else ("waiting", -1))
        self.answer, self.run.waits_for, self.run.answer, self.run.reason = self.run.answer, None, None, None
        try:
            if not resumes:
                self._check_limits()
            with self.unit.attempt():
                outcome = STEP_KINDS[step.kind].resume(self) if resumes else STEP_KINDS[step.kind].begin(self)
        except (StepFailed, BellhopError) as error:
            code, text = (error.code, error.text) if isinstance(error, StepFailed) else ("error", error.detail)
            self._log(step, "failed", text, code=code)
            self._fail(code, text)
            return False
        finally:
            self.unit.computed += self._budget.spent
        return self._apply(step, outcome)

    def _check_limits(self) -> None:
        self.run.taken += 1
        self.run.unbroken += 1
        if self.run.unbroken > MOST_UNBROKEN:
            raise StepFailed("limit", f"The run took {MOST_UNBROKEN} steps without a wait.")
        if self.run.taken > MOST_STEPS:
            raise StepFailed("limit", f"The run took {MOST_STEPS:,} steps.")

    def _apply(self, step: Step, outcome: Outcome) -> bool:
        if isinstance(outcome, Wait):
            self._wait(step, outcome)
            return False
        if isinstance(outcome, Stop):
            self._log(step, "succeeded", outcome.text, output=outcome.result)
            self._count("left")
            self.run.result = outcome.result
            self._finish("completed")
            return False
        status = "failed" if outcome.code else "succeeded"
        self._log(step, status, outcome.text, outcome.input, outcome.output, outcome.code)
        self._count("left")
        if outcome.to:
            self._count(f"arm:{outcome.to}")
        if outcome.saved:
            self.run.saved = {**self.run.saved, **outcome.saved}
        self._set(outcome.run_fields)
        self.run.step = step.inside[outcome.to] if outcome.to else step.next
        return True

    def _wait(self, step: Step, wait: Wait) -> None:
        self._log(step, "waiting", wait.text, wait.input)
        self._count("waiting")
        self._set(wait.run_fields)
        self.run.wait += 1
        self.run.unbroken = 0
        self.run.deaths = 0  # the run has passed the step that may have killed workers
        self.run.waits_for, self.run.resume_at = wait.waits_for, wait.until
        status = {"response": "running", "member": "held"}.get(wait.waits_for, "waiting")
        self._put(status=status, due_at=None)
        if wait.request is not None:
            self._request(wait.request)

    def _request(self, request: Mapping[str, Any]) -> None:
        run = self.run
        self.unit.append(
            RunRequest(
                id=ids.new("req"),
                workspace_id=run.workspace_id,
                run_id=run.id,
                wait=run.wait,
                key=uuid4(),
                request=request,
                due_at=self.now,
            )
        )
        database.after_commit(partial(mailbox.ring, http_requests.MAIL, run.workspace_id))

    def _fail(self, code: FailureCode, text: str) -> None:
        if self.run.step is not None:
            self._count("failed")
        self._finish("failed", failure={"code": code, "detail": text, "step": self.run.step})

    def _count(self, key: str, amount: int = 1) -> None:
        run_states.count_step(self.unit, self.run, key, amount)

    def _log(
        self, step: Step, status: str, text: str, given: Any = None, output: Any = None, code: str | None = None
    ) -> None:
        detail = {"input": given, "output": output, "code": code, "text": text}
        if missing := list(self._budget.missing)[:MOST_WARNINGS]:
            detail["warnings"] = [f"'{name[:LONGEST_NAME]}' printed nothing." for name in missing]
            self._count(WARNED)
        self.run.logged += 1
        self.taken.append((step.kind, status))
        self.unit.append(
            RunStep(
                id=ids.new("stp"),
                workspace_id=self.run.workspace_id,
                run_id=self.run.id,
                number=self.run.logged,
                step=step.id,
                kind=step.kind,
                status=status,
                at=self.now,
                detail=detail,
            )
        )

    def _set(self, fields: Mapping[str, Any]) -> None:
        for name, value in fields.items():
            setattr(self.run, name, value)

    def _finish(self, status: Any, failure: Mapping[str, Any] | None = None) -> None:
        self.ended_as = status
        run_endings.finish(self.unit, self.run, status, automation_name=self._automation_name, failure=failure)

    def _put(self, **fields: Any) -> None:
        run_states.change(self.unit, self.run, leased_until=None, **fields)
