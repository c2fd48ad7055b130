"""Foldings: which steps of a picture show what stands inside them, as the address says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from flask import request

from app.web.lists import address

# A picture of more than MANY_STEPS steps is folded at first, from FIRST_LEVEL on.
MANY_STEPS, FIRST_LEVEL = 60, 1
MOST_TURNED = 60
_LEVEL = re.compile("all|[0-9]")
_TURNED = re.compile(r"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64})*")


@dataclass(frozen=True, slots=True)
class Folding:
    """`level`: from which on steps are folded, None: nowhere. `turned`: steps that are the other way round."""

    level: int | None
    turned: frozenset[str]

    def is_folded(self, step_id: str, level: int) -> bool:
        """Whether what stands inside the step, at a level that counts from 0, is left out."""
        return (self.level is not None and level >= self.level) != (step_id in self.turned)

    def turn(self, step_id: str) -> str:
        """The address of the same page with that step the other way round."""
        turned = sorted(self.turned ^ {step_id})[:MOST_TURNED]
        return address(turn=".".join(turned) or None) + f"#step-{step_id}"

    @property
    def fold_all(self) -> str:
        """The address of the same page with every step folded."""
        return address(fold="0", turn=None)

    @property
    def unfold_all(self) -> str:
        """The address of the same page with no step folded."""
        return address(fold="all", turn=None)


NOWHERE = Folding(None, frozenset())


def read(steps: int) -> Folding:
    """What the address says of a picture with that many steps: `fold`, a level or `all`, and `turn`, some steps."""
    fold, turn = request.args.get("fold", ""), request.args.get("turn", "")
    turned = frozenset(turn.split(".")[:MOST_TURNED]) if _TURNED.fullmatch(turn) else frozenset()
    if not _LEVEL.fullmatch(fold):
        return Folding(FIRST_LEVEL if steps > MANY_STEPS else None, turned)
    return Folding(None if fold == "all" else int(fold), turned)
