"""People who write, for tests of the inbox."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.cast import Api
from tests.pages import Person
from tests.talks import make_channel, receive

Say = Callable[..., str]


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_channel(api.workspace_id)


@pytest.fixture
def say(api: Api, channel_id: str) -> Say:
    """Has somebody write, and returns the conversation."""

    def say(name: str, text: str = "Hello", channel: str = channel_id) -> str:
        contact = api.contact(email=f"{name.lower()}@example.com", first_name=name)
        return str(receive(api.workspace_id, contact["id"], channel, text).conversation_id)

    return say


@pytest.fixture
def listed() -> Callable[..., list[str]]:
    """The names in the list that a person sees, from its top."""

    def listed(person: Person, query: str = "") -> list[str]:
        return re.findall(r'<bdi class="name">([^<]*)</bdi>', person.page(f"inbox{query}"))

    return listed
