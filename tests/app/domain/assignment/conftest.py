"""A balanced channel, and how conversations are closed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.app.domain.assignment.balancing import make_balanced
from tests.cast import Api


@pytest.fixture
def channel_id(workspace_id: str) -> str:
    return make_balanced(workspace_id)


@pytest.fixture
def close(api: Api) -> Callable[[str], object]:
    return lambda conversation_id: api.done(api.patch(f"conversations/{conversation_id}", {"status": "closed"}))
