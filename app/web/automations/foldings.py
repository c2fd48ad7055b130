"""Foldings: reads from the address of the page which steps of a picture are folded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flask import request

from app.web.lists import address

# A picture of more than MANY_STEPS steps is folded from FIRST_LEVEL on, unless the address says otherwise.
MANY_STEPS, FIRST_LEVEL = 60, 1
MOST_TURNED = 60
_LEVEL = re.compile("all|[0-9]")
_TURNED = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64})*")


@dataclass(frozen=True, slots=True)
class Folding:
    """Which steps are folded: all from `level` on (None: none), with the exceptions in `turned`."""

    level: int | None
    turned: frozenset[str]

    def is_folded(self, step_id: str, level: int) -> bool:
        """Whether the steps inside this step are hidden. Levels count from 0."""
        return (self.level is not None and level >= self.level) != (step_id in self.turned)

    def turn(self, step_id: str) -> str:
        """Returns the address of this page with the folding of the step toggled."""
        turned = sorted(self.turned ^ {step_id})[:MOST_TURNED]
        return address(turn=".".join(turned) or None) + f"#step-{step_id}"

    @property
    def fold_all(self) -> str:
        """Returns the address of this page with every step folded."""
        return address(fold="0", turn=None)

    @property
    def unfold_all(self) -> str:
        """Returns the address of this page with no step folded."""
        return address(fold="all", turn=None)


NOWHERE = Folding(None, frozenset())


def read(steps: int) -> Folding:
    """Reads the folding of a picture with that many steps from the address.

    `fold` is a level or `all`; `turn` lists the exceptions.
    """
    fold, turn = request.args.get("fold", ""), request.args.get("turn", "")
    turned = frozenset(turn.split(".")[:MOST_TURNED]) if _TURNED.fullmatch(turn) else frozenset()
    if not _LEVEL.fullmatch(fold):
        return Folding(FIRST_LEVEL if steps > MANY_STEPS else None, turned)
    return Folding(None if fold == "all" else int(fold), turned)
