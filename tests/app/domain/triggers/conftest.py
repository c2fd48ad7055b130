from __future__ import annotations

import pytest

from tests.app.domain.triggers.triggering import make_contact
from tests.cast import Api


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


@pytest.fixture
def contact_id(workspace_id: str) -> str:
    return make_contact(workspace_id)
