"""Nouns of the commands: kinds of rows that operators list, look at and change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from app.domain.people import workspaces
from app.errors import NotFound
from app.lib import clock, ids
from app.models.base import OwnedModel
from app.models.workspaces import Workspace

Represented = dict[str, Any]
# Applies a verb to the rows. Returns the reason for each row that was refused, by identifier.
Call = Callable[[Sequence[Any]], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Verb:
    """Something that operators can do to rows of a noun. `help` describes it in a few words.

    `done` is its participle. `among`: the statuses that `--all` covers; if empty, each row has to be named.
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
        """Returns the columns of a row that lists show. None contains text by contacts or members."""
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
