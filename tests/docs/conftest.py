from __future__ import annotations

import pytest

from tests.cast import Api
from tests.talks import make_channel


@pytest.fixture
def shop(api: Api) -> Api:
    """A workspace with a channel."""
    make_channel(api.workspace_id)
    return api
