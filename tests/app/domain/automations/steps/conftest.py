"""A contact that can be talked to, and a run."""

from __future__ import annotations

import pytest

from tests.talks import make_run


@pytest.fixture
def run_id(workspace_id: str, contact_id: str) -> str:
    return make_run(workspace_id, contact_id, automation_id="aut_1")
