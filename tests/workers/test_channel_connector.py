from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from app import database
from app.domain.channels import channel_connections
from tests import playing
from tests.cast import Api, one, until
from tests.playing import create, state
from tests.stack.receiver import Answer, Receiver
from workers.channel_connector import ChannelConnector


@pytest.fixture
def provider(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    playing.install(monkeypatch)
    monkeypatch.setattr(playing, "API", receiver.url("").rstrip("/"))
    return receiver


@pytest.fixture
def channel_connector(empty: None, provider: Receiver) -> Iterator[ChannelConnector]:
    # It ends before the provider forgets what it got.
    made = ChannelConnector(channel_connections)
    yield made
    made.stop()
    database.database.close()


def test_a_channel_is_connected_over_https(api: Api, channel_connector: ChannelConnector, provider: Receiver) -> None:
    channel_id = create(api.workspace_id)

    channel_connector.wake(api.workspace_id)

    until(lambda: state(channel_id) == ("connected", None))
    assert [received.path for received in provider.received] == ["/me", "/hook"]


def test_what_the_provider_answers_decides(api: Api, channel_connector: ChannelConnector, provider: Receiver) -> None:
    provider.answers["/me"] = Answer(401, b"{}")
    channel_id = create(api.workspace_id)

    channel_connector.wake(api.workspace_id)

    until(lambda: state(channel_id) == ("reauthorization_required", "played"))


def test_an_address_that_cannot_be_asked_is_an_answer_too(
    api: Api, channel_connector: ChannelConnector, provider: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "API", "https://127.0.0.1:1")
    channel_id = create(api.workspace_id)

    channel_connector.wake(api.workspace_id)

    until(lambda: one("SELECT tries FROM channel_requests") == 1)
    assert state(channel_id) == ("disconnected", "connecting")


def test_a_workspace_whose_provider_hangs_holds_up_no_other(
    api: Api, others: Api, channel_connector: ChannelConnector, provider: Receiver, released: threading.Event
) -> None:
    provider.behaviour = lambda path, body: Answer(released=released) if b"hangs" in body else 200
    for number in range(6):
        create(api.workspace_id, f"{number}:hangs")
    channel_connector.wake(api.workspace_id)
    until(lambda: provider.counts["/me"] == 1)
    channel_id = create(others.workspace_id)

    channel_connector.wake(others.workspace_id)

    until(lambda: state(channel_id) == ("connected", None))
    assert one("SELECT count(*) FROM channel_requests") == 6


@pytest.mark.usefixtures("provider")
def test_a_stopped_connector_begins_nothing(api: Api, channel_connector: ChannelConnector) -> None:
    create(api.workspace_id)
    channel_connector.stop()

    channel_connector.wake(api.workspace_id)

    assert one("SELECT claim FROM channel_requests") == 0
