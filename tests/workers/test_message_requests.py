"""Messages with files, as the courier sends them to the played providers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app import database
from app.config import settings
from app.database import rows
from app.domain.channels import channels
from app.lib import json
from app.models.conversations import Message
from tests.app.channels.conformance import EXAMPLES, Example
from tests.cast import Api, one, until
from tests.conftest import Servers
from tests.posts import make_post, open_talk, status_of
from tests.providers.base import Reply, Trouble
from tests.providers.telegram import refused
from tests.providers.whatsapp import refusal
from workers.message_sender import MessageSender

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
PDF = b"%PDF-1.7\r\n--boundary--\r\n" + bytes(range(256))


def started(name: str, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Example:
    example = EXAMPLES[name](Path(servers.certificates.ca_file).parent)
    monkeypatch.setenv(f"{name.upper()}_API_URL", example.account.api_url)
    settings.cache_clear()
    return example


def ended(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    example.provider.stop()
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture(params=sorted(EXAMPLES))
def example(request: pytest.FixtureRequest, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Example]:
    made = started(request.param, servers, monkeypatch)
    yield made
    ended(made, monkeypatch)


@pytest.fixture
def whatsapp(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Example]:
    made = started("whatsapp", servers, monkeypatch)
    yield made
    ended(made, monkeypatch)


@pytest.fixture
def telegram(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Example]:
    made = started("telegram", servers, monkeypatch)
    yield made
    ended(made, monkeypatch)


@pytest.fixture
def courier(empty: None) -> Iterator[MessageSender]:
    made = MessageSender()
    yield made
    made.stop()
    database.database.close()


def talk_on(api: Api, example: Example) -> tuple[str, str]:
    """A connected channel of the provider, and a conversation on it whose window is open."""
    channel_id = make_post(api.workspace_id)
    rows(
        "UPDATE channels SET kind = %s, settings = %s, credentials = %s",
        (
            example.name,
            json.dumps(example.account.settings).decode(),
            channels.sealed(example.account.credentials),
        ),
    )
    talk = open_talk(api, channel_id, example.to)
    rows("UPDATE conversations SET window_ends_at = now() + interval '1 hour'")
    return channel_id, talk


def queue(api: Api, talk: str, text: str, content: bytes | None = None, name: str = "bill.pdf") -> str:
    """Queues a message, with a file if there is content."""
    body: dict[str, object] = {"text": text}
    if content is not None:
        uploaded = api.post(f"uploads?name={name}", data=content, content_type="application/pdf").json["data"]
        body["attachments"] = [{"upload_id": uploaded["id"]}]
    return str(api.done(api.post(f"conversations/{talk}/messages", body))["resource"]["id"])


def paths(example: Example) -> list[str]:
    return [call.path.rpartition("/")[2] for call in example.provider.calls]


def test_a_file_reaches_the_provider_whole_and_before_the_next_message(
    api: Api, example: Example, courier: MessageSender
) -> None:
    channel_id, talk = talk_on(api, example)
    first, second = queue(api, talk, "Your bill", PDF), queue(api, talk, "Thank you")

    courier.wake(channel_id)
    until(lambda: status_of(second) == "sent")

    assert (status_of(first), example.files()) == ("sent", [PDF])
    assert Message.get_by_id(first).provider_id
    expected = {"telegram": ["sendDocument", "sendMessage"], "whatsapp": ["media", "messages", "messages"]}
    assert paths(example) == expected[example.name]


def test_a_file_whose_message_has_no_answer_is_unknown_and_not_sent_again(
    api: Api, example: Example, courier: MessageSender
) -> None:
    channel_id, talk = talk_on(api, example)
    example.provider.happens(Trouble.CUT_AFTER, path={"telegram": "/sendDocument"}.get(example.name, "/messages"))
    first, second = queue(api, talk, "Your bill", PDF), queue(api, talk, "Thank you")

    courier.wake(channel_id)
    until(lambda: status_of(second) == "sent")

    assert (status_of(first), Message.get_by_id(first).failure["code"]) == ("unknown", "no_answer")
    assert len(example.files()) == 1


def test_a_file_that_is_gone_fails_its_message_and_blocks_no_other(
    api: Api, example: Example, courier: MessageSender
) -> None:
    channel_id, talk = talk_on(api, example)
    first, second = queue(api, talk, "Your bill", PDF), queue(api, talk, "Thank you")
    rows("DELETE FROM uploads")

    courier.wake(channel_id)
    until(lambda: status_of(second) == "sent")

    assert Message.get_by_id(first).failure["code"] == "no_file"
    assert example.files() == []


@pytest.mark.parametrize("happening", [refusal(131053, "Media upload error"), Reply(500), Trouble.CUT_AFTER], ids=str)
def test_an_upload_that_fails_is_made_again_and_the_message_is_sent_once(
    api: Api, whatsapp: Example, courier: MessageSender, happening: Reply | Trouble
) -> None:
    channel_id, talk = talk_on(api, whatsapp)
    whatsapp.provider.happens(happening, path="/media")
    message_id = queue(api, talk, "Your bill", PDF)
    courier.wake(channel_id)
    until(lambda: one("SELECT put_off_at FROM messages"))
    assert status_of(message_id) == "queued"
    rows("UPDATE messages SET due_at = now()")
    rows("UPDATE channels SET paused_until = NULL")

    courier.wake(channel_id)
    until(lambda: status_of(message_id) == "sent")

    assert (whatsapp.files(), paths(whatsapp)) == ([PDF], ["media", "media", "messages"])


def test_a_provider_that_fails_is_spared_for_a_moment_and_then_gets_what_waits(
    api: Api, example: Example, courier: MessageSender
) -> None:
    channel_id, talk = talk_on(api, example)
    example.provider.happens(Reply(500), path={"telegram": "/sendMessage"}.get(example.name, "/messages"))
    first, second = queue(api, talk, "one"), queue(api, talk, "two")

    courier.wake(channel_id)
    until(lambda: status_of(second) == "sent")

    assert (status_of(first), Message.get_by_id(first).failure["code"]) == ("unknown", "provider_error")
    assert one("SELECT paused_until FROM channels") is not None
    assert courier._requests._faults == {}


def test_an_upload_that_is_refused_fails_the_message(api: Api, whatsapp: Example, courier: MessageSender) -> None:
    channel_id, talk = talk_on(api, whatsapp)
    whatsapp.provider.happens(refusal(100, "Invalid parameter"), path="/media")
    message_id = queue(api, talk, "Your bill", PDF)

    courier.wake(channel_id)
    until(lambda: status_of(message_id) == "failed")

    assert Message.get_by_id(message_id).failure["detail"] == "Invalid parameter (100)"
    assert paths(whatsapp) == ["media"]


@pytest.mark.parametrize(
    ("said", "calls", "status"),
    [
        ("Bad Request: PHOTO_INVALID_DIMENSIONS", ["sendPhoto", "sendDocument"], "sent"),
        ("Bad Request: chat not found", ["sendPhoto"], "failed"),
    ],
)
def test_a_photo_that_telegram_cannot_show_goes_as_a_document(
    api: Api, telegram: Example, courier: MessageSender, said: str, calls: list[str], status: str
) -> None:
    channel_id, talk = talk_on(api, telegram)
    telegram.provider.happens(refused(400, said), path="/sendPhoto")
    message_id = queue(api, talk, "The plan", PNG, "plan.png")

    courier.wake(channel_id)
    until(lambda: status_of(message_id) == status)

    assert paths(telegram) == calls
    assert telegram.files() == ([PNG] if status == "sent" else [])
