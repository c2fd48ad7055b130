"""Nouns of the commands: rows that operators list, look at and end."""

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
# Does it about the rows, and returns why not for those where it cannot be done, by their identifiers.
Call = Callable[[Sequence[Any]], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Verb:
    """What can be done about rows of a noun, in a few words.

    `done` is its participle. `among`: the statuses of the rows that `--all` stands for; without any, each row has to be
    named.
    """

    help: str
    done: str
    call: Call
    among: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Noun:
    """A kind of rows, by the plural. `newest` finds those of a workspace: of a status or of any, after a `position`."""

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
        """The row, of any workspace. Raises NotFound."""
        found = self.model.get_or_none(self.model.id == identifier)
        if found is None:
            raise NotFound(f"There is no such identifier; python -m app {self.name} list has some.")
        return found

    def row(self, found: Any) -> Represented:
        """What lists show of it: nothing that contacts or members wrote."""
        return {name: getattr(found, name) for name in self.columns}

    def pages(
        self, workspace_id: str | None, statuses: Sequence[str | None], older_than: timedelta | None, size: int
    ) -> Iterator[Sequence[Any]]:
        """All that match, a page at a time: one workspace after the other, then by status, the newest first."""
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
