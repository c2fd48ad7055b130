"""The nouns of the commands, which are kinds of rows, and what operators can do to each kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter
from typing import Any

from app.commands import command_writes
from app.domain import resources, writes
from app.domain.automations import runs
from app.domain.broadcasts import broadcasts
from app.domain.conversations import message_endings, messages
from app.domain.deliveries import deliveries, replays
from app.domain.jobs import failed_jobs
from app.domain.lifecycle import imports
from app.domain.people import workspaces
from app.domain.triggers import run_states
from app.domain.verbs import VERBS
from app.errors import BellhopError, NotFound
from app.lib import clock, ids
from app.models import broadcasts as broadcast_models
from app.models import deliveries as delivery_models
from app.models import jobs as job_models
from app.models import message_searches
from app.models import replays as replay_models
from app.models import runs as run_models
from app.models.base import OwnedModel, page_before
from app.models.broadcasts import Broadcast
from app.models.conversations import Message
from app.models.deliveries import Delivery
from app.models.imports import Import
from app.models.jobs import Job
from app.models.replays import Replay
from app.models.runs import Run, RunStep
from app.models.workspaces import Workspace

Represented = dict[str, Any]
# Applies a verb to the rows. Returns the reason for each row that was refused, by identifier.
Call = Callable[[Sequence[Any]], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Verb:
    """An action of operators on rows of a noun. `help`: the help text of its command.

    `done`: its participle, under which the output counts the rows that were not refused. `among`: the statuses that
    `--all` covers. If it is empty, each row has to be named.
    """

    help: str
    done: str
    call: Call
    among: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Noun:
    """A kind of rows, named by its plural.

    `newest` gets a workspace, a status (None: any), the value of the column `position` to continue after (None: from
    the first), and a limit. It returns rows, newest first.
    """

    name: str
    about: str
    model: type[OwnedModel]
    prefix: str
    columns: tuple[str, ...]
    statuses: tuple[str, ...]
    newest: Callable[[str, str | None, str | None, int], Sequence[Any]]
    represent: Callable[[Any], Represented]
    verbs: Mapping[str, Verb] = field(default_factory=dict)
    position: str = "id"

    def find(self, identifier: str) -> Any:
        """Returns the row, of any workspace. Raises NotFound."""
        found = self.model.get_or_none(self.model.id == identifier)
        if found is None:
            raise NotFound(f"There is no such identifier; python -m app {self.name} list has some.")
        return found

    def row(self, found: Any) -> Represented:
        """Returns the columns of the row that lists show. No column has text by contacts or members."""
        return {name: getattr(found, name) for name in self.columns}

    def pages(
        self, workspace_id: str | None, statuses: Sequence[str | None], older_than: timedelta | None, size: int
    ) -> Iterator[Sequence[Any]]:
        """Yields all matching rows, a page at a time: by workspace, then by status, newest first."""
        before = ids.bound(self.prefix, clock.now() - older_than) if older_than else None
        for owner in [workspaces.find(workspace_id).id] if workspace_id else _workspaces():
            for status in statuses:
                last = before
                while found := self.newest(owner, status, last, size):
                    yield found
                    last = getattr(found[-1], self.position)


def _workspaces() -> Iterator[str]:
    last: str | None = None
    while found := Workspace.newest(None, last, 100):
        yield from (each.id for each in found)
        last = found[-1].id


def _by_job(accept: Callable[[Any], Job]) -> Call:
    """Returns a Call that accepts a write for each row with `accept`, and then applies the writes."""

    def call(found: Sequence[Any]) -> dict[str, str]:
        refused, accepted = {}, {}
        for row in found:
            try:
                accepted[row.id] = accept(row)
            except BellhopError as error:
                refused[row.id] = error.detail
        ended = {job.id: job for job in command_writes.apply(list(accepted.values()))}
        for row_id, job in accepted.items():
            if problem := ended[job.id].problem:
                refused[row_id] = problem["detail"]
        return refused

    return call


def _by_write(
    kind: str,
    payload_of: Callable[[Any], Mapping[str, Any]] = lambda _: {},
    resource_of: Callable[[Any], str | None] = attrgetter("id"),
) -> Call:
    return _by_job(lambda row: command_writes.accept(row.workspace_id, kind, payload_of(row), resource_of(row)))


def _at_once(end: Callable[[Sequence[str]], Collection[str]], why_not: str) -> Call:
    def call(found: Sequence[Any]) -> dict[str, str]:
        ended = end([row.id for row in found])
        return {row.id: why_not for row in found if row.id not in ended}

    return call


def _moves(name: str, states: Sequence[str]) -> dict[str, Verb]:
    """Returns the verbs that pause, continue and abort replays or broadcasts."""
    unfinished = tuple(state for state in states if state not in ("done", "aborted"))
    pause, go_on, abort = (_by_write(f"{name}.{verb}") for verb in ("pause", "continue", "abort"))
    after = "Let them go on after a pause, or with the rest after the canary."
    return {
        "pause": Verb("Stop them until they are continued.", "paused", pause, ("canary", "running")),
        "continue": Verb(after, "continued", go_on, ("canary", "paused")),
        "abort": Verb("End them for good. What they have done stays.", "aborted", abort, unfinished),
    }


def _contact_of(row: Any) -> Mapping[str, Any]:
    return {"contact_id": row.contact_id}


def _imports(workspace_id: str, status: str | None, last_id: str | None, limit: int) -> Sequence[Import]:
    found = Job.newest(workspace_id, ["contacts.import"], status, last_id, limit)
    wanted = [job.resource_id for job in found]
    return list(Import.select().where(Import.id.in_(wanted)).order_by(Import.job_id.desc())) if wanted else []


def _jobs(workspace_id: str, status: str | None, last_id: str | None, limit: int) -> Sequence[Job]:
    if status == "broken":
        return Job.broken(workspace_id, last_id, limit)
    if status == "unknown":
        return Job.set_aside(workspace_id, last_id, limit)
    return Job.newest(workspace_id, status and list(VERBS), status, last_id, limit)


def _with_what_broke(job: Job) -> Represented:
    return resources.represent_job(job) | ({"broke": job.broke} if job.broke else {})


def _deliveries(workspace_id: str, status: str | None, last_id: str | None, limit: int) -> Sequence[Delivery]:
    found = Delivery.matching(workspace_id, {"status": status} if status else {})
    return list(page_before(found, Delivery, [last_id], limit))


def _runs(workspace_id: str, status: str | None, last_id: str | None, limit: int) -> Sequence[Run]:
    return Run.newest(workspace_id, {"status": status} if status else {}, last_id, limit)


def _with_steps(run: Run) -> Represented:
    return run_states.represent(run) | {"steps": [runs.represent_step(step) for step in RunStep.latest(run, 1_000)]}


_KNOWN = "Only a job of an unknown kind can be cancelled."
_NOT_QUEUED = "Only a queued message can be cancelled, and not while its conversation changes."

NOUNS = (
    Noun(
        "jobs",
        "Accepted writes. `broken` ones failed by a fault of ours and can be replayed; `unknown` ones wait for a worker"
        " of a version that knows their kind.",
        *(Job, "job", ("id", "workspace_id", "kind", "status", "resource_id", "deaths", "created_at", "finished_at")),
        ("broken", "unknown", *job_models.STATUSES),
        _jobs,
        _with_what_broke,
        {
            "replay": Verb(
                "Apply broken writes again, as new jobs.",
                "replayed",
                _by_job(lambda job: writes.replay(job, ids.new("cmd"), None)[0]),
                ("broken",),
            ),
            "cancel": Verb(
                "Fail writes that no worker knows, once a version was taken back for good. They can be replayed.",
                "cancelled",
                _at_once(failed_jobs.give_up, _KNOWN),
                ("unknown",),
            ),
        },
    ),
    Noun(
        "imports",
        "Imports of contacts. Each is a job, and ends with it: see jobs.",
        *(Import, "job", ("id", "workspace_id", "job_id", "total", "done", "failed", "created_at", "finished_at")),
        tuple(job_models.STATUSES),
        _imports,
        imports.represent,
        position="job_id",
    ),
    Noun(
        "deliveries",
        "Events on their way to endpoints. To send many again: replay.",
        *(Delivery, "dlv"),
        (
            *("id", "workspace_id", "endpoint_id", "kind", "status", "attempts", "last_error_code"),
            *("next_attempt_at", "created_at"),
        ),
        delivery_models.STATUSES,
        _deliveries,
        deliveries.represent_whole,
        {
            "resend": Verb(
                "Send them now. One that was delivered goes out as a new delivery of the same event.",
                "resent",
                _by_write("deliveries.resend", lambda delivery: {"delivery_id": delivery.id}, lambda _: None),
            )
        },
    ),
    Noun(
        "replays",
        "Deliveries that are sent again; replay begins one.",
        *(Replay, "rpl", ("id", "workspace_id", "state", "sent", "skipped", "count", "created_at", "finished_at")),
        replay_models.STATES,
        Replay.newest,
        replays.represent,
        _moves("replays", replay_models.STATES),
    ),
    Noun(
        "runs",
        "Contacts on their way through automations.",
        *(Run, "run"),
        (
            *("id", "workspace_id", "automation_id", "status", "reason", "step", "waits_for", "resume_at", "deaths"),
            "created_at",
        ),
        run_models.STATUSES,
        _runs,
        _with_steps,
        {
            "cancel": Verb("End them.", "cancelled", _by_write("runs.cancel", _contact_of), run_models.UNFINISHED),
            "resume": Verb(
                "Let those go on that a member's message holds.", "resumed", _by_write("runs.resume", _contact_of)
            ),
        },
    ),
    Noun(
        "messages",
        "Messages to contacts. `unknown`: the provider may or may not have taken it, so it is not sent again by itself."
        " With --status, all messages of a workspace are searched, which takes some seconds for a million.",
        *(Message, "msg", ("id", "workspace_id", "channel_id", "status", "created_at", "send_at", "expires_at")),
        ("scheduled", "queued", "sending", "sent", "delivered", "read", "failed", "unknown"),
        message_searches.outbound,
        messages.represent,
        {
            "resend": Verb(
                "Send them again. The contact may get one twice that is unknown.",
                "resent",
                _by_write("messages.resend", _contact_of),
                ("failed", "unknown"),
            ),
            "cancel": Verb(
                "Fail queued ones with the code `cancelled`, such as those that wait for a channel to be connected.",
                "cancelled",
                _at_once(message_endings.cancel, _NOT_QUEUED),
                ("queued",),
            ),
        },
    ),
    Noun(
        "broadcasts",
        "Messages to a segment, or automations started for it.",
        *(Broadcast, "bct", ("id", "workspace_id", "name", "state", "problem", "handled", "count", "created_at")),
        broadcast_models.STATES,
        Broadcast.newest,
        broadcasts.represent,
        _moves("broadcasts", broadcast_models.STATES),
    ),
)
