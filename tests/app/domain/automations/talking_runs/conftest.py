"""A contact on a channel, and runs that the engine carries on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from app.database import transaction
from app.domain.triggers import batches, run_states
from app.domain.triggers.run_states import Start
from app.models import sets
from app.models.contacts import Contact
from app.models.runs import Run
from tests.automations import carry_on, make_automation


@pytest.fixture
def start(workspace_id: str, contact_id: str) -> Callable[..., str]:
    """Begins a run of these steps and returns its identifier."""

    def start(*steps: Mapping[str, Any], contact_id: str = contact_id) -> str:
        automation_id = make_automation(workspace_id, {"steps": steps})
        begins = Start(workspace_id, automation_id, 1, contact_id, "trace-1")
        with transaction():
            key = sets.key(Contact, workspace_id, "id", contact_id)
            [run] = batches.run([lambda unit: run_states.begin(unit, begins)], [key])
        assert isinstance(run, Run)
        return str(run.id)

    return start


@pytest.fixture
def work(workspace_id: str) -> Callable[[], None]:
    return partial(carry_on, workspace_id)
