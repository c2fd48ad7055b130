"""Sources: reads other products' files defensively, and notes parts without an equivalent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app import bounds
from app.errors import BellhopError
from app.lib import json
from app.lib.templates import Budget, Overspent

MOST_BYTES = 1_000_000
MOST_PARTS = 1_500  # nodes, blocks and actions in a file, of which at most 500 become steps
MOST_WAYS = 5_000  # entries of any list in a file, such as connections
LONGEST_TEXT = 10_000  # the most characters of a text that are kept
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


class Unreadable(BellhopError):
    """The file cannot be imported. The detail says why."""

    slug = "validation-failed"


class Work(Budget):
    """The work of importing one file: elements and characters visited. A small file can need a lot."""

    def __init__(self) -> None:
        super().__init__(bounds.COMPUTING_PER_IMPORT.most)

    def spend(self, steps: int) -> None:
        """Adds `steps` to the work. Raises Unreadable if the total exceeds COMPUTING_PER_IMPORT."""
        try:
            super().spend(steps)
        except Overspent as error:
            bounds.COMPUTING_PER_IMPORT.reached()
            raise Unreadable(
                "The file is too entangled: what is in it leads to each other, or names each other, in too many ways."
            ) from error


@dataclass(frozen=True, slots=True)
class Lost:
    """A part of the source without an equivalent: its identifier, its place, and the reason."""

    source: str
    where: str
    why: str


@dataclass(slots=True)
class Imported:
    """The result of an import. `kept`: the identifiers of source parts in the definition.

    Every part is in `kept` or in `lost`; in both, if it was converted partly.
    """

    kind: str
    name: str
    definition: dict[str, Any]
    lost: Sequence[Lost] = ()
    kept: frozenset[str] = frozenset()
    exits: Sequence[Mapping[str, Any]] = ()
    goal: Mapping[str, Any] | None = None
    reentry: str | None = None


@dataclass(slots=True)
class Ledger:
    """Collects the parts of a source that are lost, while the source is read."""

    lost: dict[Lost, None] = field(default_factory=dict)

    def lose(self, source: str, where: str, why: str) -> None:
        """Notes that a part has no equivalent. The same note is kept only once."""
        self.lost[Lost(source, where[:200], why[:300])] = None


def load(raw: bytes | str) -> Mapping[str, Any]:
    """Parses a file of at most MOST_BYTES that holds a JSON object. Raises Unreadable."""
    encoded = raw if isinstance(raw, bytes) else raw.encode(errors="surrogatepass")
    if len(encoded) > MOST_BYTES:
        raise Unreadable(f"The file is larger than {MOST_BYTES // 1_000_000} MB.")
    if not raw.strip():
        raise Unreadable("The file is empty.")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"This is not JSON that can be read: {str(error)[:200]}.") from error
    if not isinstance(document, dict):
        raise Unreadable("This JSON is not an object, so it is no automation.")
    if b"\\u0000" in encoded:
        raise Unreadable("The file has characters that no text can hold (NUL).")
    return document


def listed(value: Any, where: str) -> list[Mapping[str, Any]]:
    """Returns `value`, a list of objects; [] for None. `where` names it in the error.

    Raises Unreadable for anything else, or for more than MOST_WAYS objects.
    """
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Unreadable(f"The file is damaged: {where} is not a list of objects.")
    if len(value) > MOST_WAYS:
        raise Unreadable(f"The file is too large: {where} has more than {MOST_WAYS:,} entries.")
    return value


def mapping(value: Any) -> Mapping[str, Any]:
    """Returns the value if it is an object, otherwise {}."""
    return value if isinstance(value, dict) else {}


def text(value: Any) -> str:
    """Returns a string or number as text, truncated to LONGEST_TEXT; otherwise ""."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return str(value)[:LONGEST_TEXT]


def texts(value: Any) -> list[str]:
    """Returns the texts in a list."""
    return [text(each) for each in value] if isinstance(value, list) else []


def quoted(value: str, most: int = 60) -> str:
    """Puts the text in quotation marks, and truncates it."""
    line = " ".join(value.split())
    return f"“{line if len(line) <= most else line[: most - 1] + '…'}”"


def name_of(label: str, otherwise: str = "value") -> str:
    """Converts a label to a name that steps and variables can have."""
    made = _NOT_IN_NAMES.sub("_", label[:200].lower()).strip("_")[:40].strip("_")
    return made or otherwise


class NameTable:
    """Maps keys to unique names."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: dict[str, int] = {}  # the last number appended to each name

    def of(self, key: str, label: str, otherwise: str = "value") -> str:
        """Returns the key's name; makes it from the label the first time."""
        if key not in self._names:
            self._names[key] = self.fresh(name_of(label, otherwise))
        return self._names[key]

    def fresh(self, wanted: str) -> str:
        """Returns the name, with a number if the name is taken, and takes it."""
        name, number = wanted, self._taken.get(wanted, 1)
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken[wanted] = number
        self._taken[name] = self._taken.get(name, 1)
        return name


def escaped(literal: str) -> str:
    """Escapes a text, so that the template prints it unchanged."""
    return literal.replace("{{", '{{ "{{" }}').replace("{%", '{{ "{%" }}')
