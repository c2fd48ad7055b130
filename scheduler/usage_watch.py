"""A pass that warns workspaces of their limits, some of them at a time."""

from __future__ import annotations

from app.domain.billing import usage_warnings


class UsageWatch:
    """Each call looks at the next workspaces, and begins again at the end."""

    def __init__(self) -> None:
        self._after = ""

    def __call__(self) -> int:
        """Warns, and returns how many times."""
        self._after, made = usage_warnings.warn(self._after)
        return made
