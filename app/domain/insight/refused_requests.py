"""Refused requests: records what the API refused and why, for support to find by request ID.

Refusals are kept for a week. Noting a refusal costs the request no statement: a thread of the process stores it a
little later.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import datetime, timedelta

import structlog

from app.database import DatabaseAway, database, rows
from app.lib import ids

log = structlog.get_logger(__name__)

KEPT = timedelta(days=7)
# For each workspace and problem: how many a process notes in a minute, and how many are kept. A caller that is refused
# a million times thus costs next to nothing, and pushes out nothing but its own refusals of the same problem.
MOST_A_MINUTE = 20
MOST_KEPT = 1_000
# The most refusals that wait to be written. Further ones are dropped.
MOST_WAITING = 1_000
BATCH = 200
GATHERING_SECONDS = 1.0  # how long refusals gather before they are written
PAUSE_SECONDS = 5.0  # the pause before a retry while the database is away
MOST_POINTERS, LONGEST_POINTER, MOST_SEGMENTS = 10, 100, 20

# Indexes at which a path split at "/" may have a noun: `/api/v1/contacts`, `/api/v1/workspaces/<workspace>/contacts`.
_PLACES_OF_NOUNS = (1, 2, 3, 5)
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]{0,39}|v\d")
_ID = re.compile(r"([a-z]{2,4})_[0-9a-z]{26}")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused request: the columns of its row, except `created_at`, which `id` contains."""

    id: str
    workspace_id: str
    token_id: str
    trace_id: str
    method: str
    path: str
    status: int
    problem: str
    pointers: Sequence[str]


_waiting: deque[Refusal] = deque()
_is_any = threading.Event()
_minute: tuple[int, dict[tuple[str, str], int]] = (0, {})


def note(
    workspace_id: str,
    token_id: str,
    trace_id: str,
    request: tuple[str, str],
    problem: tuple[str, int],
    pointers: Iterable[str] = (),
) -> None:
    """Queues a refusal for the thread that writes them. Never waits, never raises.

    Drops the refusal above MOST_A_MINUTE of its workspace and problem, or if MOST_WAITING refusals wait. `request`: the
    method, and the path as `shown_path` returns it. `problem`: the slug and the status.
    """
    global _minute
    this_minute = int(time.monotonic() // 60)
    if _minute[0] != this_minute:
        _minute = this_minute, {}
    counts, key = _minute[1], (workspace_id, problem[0])
    noted = counts.get(key, 0)
    if noted >= MOST_A_MINUTE or len(_waiting) >= MOST_WAITING:
        return
    counts[key] = noted + 1
    (method, path), (slug, status) = request, problem
    bounded = [pointer[:LONGEST_POINTER] for pointer in list(pointers)[:MOST_POINTERS]]
    _waiting.append(Refusal(ids.new("ref"), workspace_id, token_id, trace_id, method[:20], path, status, slug, bounded))
    _is_any.set()


def shown_path(path: str, rule: str | None, known: Collection[str]) -> str:
    """Returns the path with "…" in place of parameters, except for identifiers of ours.

    Names of tags, or anything that strangers write into a path, may be personal data. If no `rule` matched, keeps the
    words that are `known` from all rules, and words in place of a noun, which may be typing errors.
    """
    given = path.split("/")[:MOST_SEGMENTS]
    if rule is None:
        kept = [
            part in known or _is_id(part) or (place in _PLACES_OF_NOUNS and _WORD.fullmatch(part) is not None)
            for place, part in enumerate(given)
        ]
    else:
        # The last parameter may contain slashes, so the path may have more parts than the rule.
        given = given[: len(wanted := rule.split("/"))]
        kept = [not name.startswith("<") or _is_id(part) for part, name in zip(given, wanted, strict=False)]
    return "/".join(part if is_kept else "…" for part, is_kept in zip(given, kept, strict=True))


def keep_writing() -> None:
    """Writes the noted refusals, for as long as the process lives."""
    while True:
        _is_any.wait()
        time.sleep(GATHERING_SECONDS)
        _is_any.clear()
        try:
            write_out()
        except DatabaseAway as error:
            log.warning("refusals.not_written", error=str(error).strip())
            time.sleep(PAUSE_SECONDS)
            _is_any.set()
        finally:
            # Refusals are rare: a connection kept for them would mostly be idle.
            database.discard()


def write_out() -> None:
    """Writes the noted refusals. Raises DatabaseAway, and keeps unwritten refusals for the next call."""
    while _waiting:
        batch: list[Refusal] = []
        with suppress(IndexError):
            while len(batch) < BATCH:
                batch.append(_waiting.popleft())
        try:
            _write(batch)
        except DatabaseAway:
            _waiting.extendleft(reversed(batch))
            raise


def _write(batch: Sequence[Refusal]) -> None:
    """Inserts refusals, each once. Deletes the oldest of their workspace and problem over MOST_KEPT."""
    columns = [list(column) for column in zip(*map(astuple, batch), strict=True)]
    pointers = ["\n".join(each.replace("\n", " ") for each in refusal.pointers) for refusal in batch]
    times: list[datetime] = [ids.time_of(refusal.id) for refusal in batch]
    rows(_INSERT, (*columns[:-1], pointers, times))
    pairs = sorted({(refusal.workspace_id, refusal.problem) for refusal in batch})
    rows(
        _DELETE_BEYOND, ([workspace for workspace, _ in pairs], [problem for _, problem in pairs], MOST_KEPT, 2 * BATCH)
    )


def _is_id(text: str) -> bool:
    found = _ID.fullmatch(text)
    return found is not None and ids.is_id(text, found[1])


_INSERT = """
    INSERT INTO refused_requests (
        id, workspace_id, token_id, trace_id, method, path, status, problem, pointers, created_at)
    SELECT noted.id, noted.workspace_id, token_id, trace_id, method, path, status, problem,
        coalesce(string_to_array(nullif(pointers, ''), E'\\n'), '{}'), noted.at
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::int[], %s::text[],
        %s::text[], %s::timestamptz[])
        AS noted(id, workspace_id, token_id, trace_id, method, path, status, problem, pointers, at)
    JOIN workspaces ON workspaces.id = noted.workspace_id
    ON CONFLICT (id) DO NOTHING
"""

# Finds the newest row beyond the number to keep, and deletes up to it, oldest first, in the order of the index.
_DELETE_BEYOND = """
    DELETE FROM refused_requests WHERE id = ANY(ARRAY(
        SELECT old.id FROM unnest(%s::text[], %s::text[]) AS noted(workspace_id, problem)
        CROSS JOIN LATERAL (
            SELECT id FROM refused_requests AS kept
            WHERE kept.workspace_id = noted.workspace_id AND kept.problem = noted.problem AND id <= (
                SELECT id FROM refused_requests AS newer
                WHERE newer.workspace_id = noted.workspace_id AND newer.problem = noted.problem
                ORDER BY id DESC OFFSET %s LIMIT 1)
            ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED) AS old))
"""
