"""An endpoint, events that make deliveries to it, and what is asked of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from app.config import settings
from app.models.endpoints import Endpoint
from tests.app.web.counting import counted_statements
from tests.cast import Api, make_endpoint, one
from tests.talks import make_channel

ADDRESS = "https://shop.example/hooks"


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    identifier, _ = make_endpoint(api.workspace_id, ADDRESS, ["contact.created"])
    return Endpoint.get_by_id(identifier)


@pytest.fixture
def happen(api: Api, endpoint: Endpoint) -> Callable[[int], None]:
    """Records `count` events, each of which makes a delivery."""

    def happen(count: int = 1) -> None:
        start = one("SELECT count(*) FROM contacts")
        for number in range(count):
            api.post("contacts", {"external_id": str(start + number)})
        api.apply()

    return happen


@pytest.fixture
def delivery(happen: Callable[[int], None]) -> str:
    happen(1)
    return str(one("SELECT id FROM deliveries"))


@pytest.fixture
def without_probing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Attempts at an endpoint that fails go out at the usual rate."""
    monkeypatch.setenv("PROBE_PAUSE_SECONDS", "0")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """All that the database is asked from now on."""
    with counted_statements() as seen:
        yield seen


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(external_id="ada", phone="+4930123456")["id"])


@pytest.fixture
def channel_id(workspace_id: str) -> str:
    return make_channel(workspace_id)
