"""Hooks: webhooks of providers are verified, stored once and answered at once; all others are refused."""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import bounds
from app.bounds import Rates
from app.database import rows
from app.domain.channels import arrivals, channels
from app.models.channels import Channel
from tests.app.web.counting import counted_statements
from tests.arriving import POST, make_post, process, received
from tests.bounding import set_bound
from tests.cast import Api, one, out_of_room, rung_on
from tests.conftest import Keys

SECRET = "s3cret"


@pytest.fixture
def channel(api: Api) -> Channel:
    made = make_post(api.workspace_id)
    rows("UPDATE channels SET credentials = %s", (channels.sealed({"secret": SECRET}),))
    return Channel.get_by_id(made.id)


def hook(client: FlaskClient, channel: Channel, body: bytes | None = None, **options: Any) -> TestResponse:
    body = pickle.dumps([received("Hi")]) if body is None else body
    path = options.pop("path", f"/hooks/post/{channel.id}")
    return client.post(path, data=body, headers={"X-Secret": SECRET} | options.pop("headers", {}), **options)


def test_a_webhook_is_stored_and_answered_while_workers_are_away(client: FlaskClient, channel: Channel) -> None:
    answer = hook(client, channel, headers={"X-Request-Id": "from-provider"})

    assert (answer.status_code, answer.data) == (200, b"{}")
    assert one("SELECT count(*) FROM arrivals") == 1
    assert one("SELECT trace_id FROM arrivals") == answer.headers["X-Request-Id"]
    assert rung_on("arrivals") == [f"{channel.id}/ada"]


def test_a_webhook_costs_two_statements(client: FlaskClient, channel: Channel) -> None:
    with counted_statements() as seen:
        hook(client, channel)

    assert len(seen) == 2


def test_a_webhook_that_is_repeated_makes_one_message(client: FlaskClient, channel: Channel) -> None:
    for _ in range(3):
        assert hook(client, channel).status_code == 200
        process()

    assert one("SELECT count(*) FROM messages") == 1


@pytest.mark.parametrize("secret", ["wrong", "", "s\u00e9cret"])
def test_a_forged_webhook_is_refused(client: FlaskClient, channel: Channel, secret: str) -> None:
    answer = hook(client, channel, headers={"X-Secret": secret.encode("utf-8").decode("latin-1")})

    assert answer.status_code == 403
    assert one("SELECT count(*) FROM arrivals") == 0


def test_without_a_secret_everything_is_refused(client: FlaskClient, channel: Channel) -> None:
    rows("UPDATE channels SET credentials = NULL")

    assert hook(client, channel).status_code == 403
    assert hook(client, channel, headers={"X-Secret": "None"}).status_code == 403


def test_a_malformed_webhook_is_refused(client: FlaskClient, channel: Channel) -> None:
    answer = hook(client, channel, b"not what they document")

    assert answer.status_code == 400
    assert "It is no pickle." in answer.json["detail"]


def test_an_oversized_webhook_is_refused_unread(client: FlaskClient, channel: Channel) -> None:
    assert hook(client, channel, b"x" * (POST.most_hook_bytes + 1)).status_code == 413


def test_what_can_be_read_of_a_malformed_webhook_is_stored_once(client: FlaskClient, channel: Channel) -> None:
    body = pickle.dumps([received("Hi")]) + b"and what cannot be read"

    assert [hook(client, channel, body).status_code for _ in range(2)] == [400, 400]
    assert one("SELECT count(*) FROM arrivals") == 1


def test_a_large_webhook_needs_a_place_and_is_to_be_sent_again(
    client: FlaskClient, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.api.hooks._LARGE_BYTES", 1_000)
    large = pickle.dumps([received("Hi " * 1_000)])

    with ExitStack() as waiting:
        for _ in range(bounds.WAITING_PER_WORKSPACE.most):
            waiting.enter_context(bounds.waiting(channel.workspace_id))
        refused, small = hook(client, channel, large), hook(client, channel, pickle.dumps([received("Hello")]))
    again = hook(client, channel, large)

    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert (small.status_code, again.status_code) == (200, 200)


def test_a_workspace_takes_so_many_items_a_minute(
    client: FlaskClient, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "ARRIVALS_PER_WORKSPACE", 2)
    monkeypatch.setattr(arrivals, "_LATELY", Rates())
    bodies = [pickle.dumps([received(key=f"{number}-{place}") for place in range(2)]) for number in range(2)]

    answers = [hook(client, channel, body) for body in bodies]

    assert [answer.status_code for answer in answers] == [200, 429]
    assert 0 < int(answers[1].headers["Retry-After"]) <= 60
    assert one("SELECT count(*) FROM arrivals") == 2


@pytest.mark.parametrize(
    "path", ["/hooks/telegram/{id}", "/hooks/post/chn_01kaj5bd40e6rr3f5y2kq0w9xz", "/hooks/post/x", "/hooks/post"]
)
def test_there_is_nothing_at_other_addresses(client: FlaskClient, channel: Channel, path: str) -> None:
    assert hook(client, channel, path=path.format(id=channel.id)).status_code == 404


def test_there_is_nothing_for_a_channel_that_was_deleted(client: FlaskClient, channel: Channel) -> None:
    rows("UPDATE channels SET deleted_at = now()")

    assert hook(client, channel).status_code == 404


def test_a_web_chat_has_no_hook(client: FlaskClient, channel: Channel) -> None:
    rows("UPDATE channels SET kind = 'web_chat'")

    assert hook(client, channel, path=f"/hooks/web_chat/{channel.id}").status_code == 404


@pytest.mark.parametrize("state", ["disconnected", "reauthorization_required"])
def test_what_arrives_over_a_channel_that_cannot_send_is_stored(
    client: FlaskClient, channel: Channel, state: str
) -> None:
    rows("UPDATE channels SET state = %s", (state,))

    assert hook(client, channel).status_code == 200
    assert one("SELECT count(*) FROM arrivals") == 1


def test_what_cannot_be_stored_is_to_be_sent_again(client: FlaskClient, channel: Channel) -> None:
    with out_of_room("arrivals"):
        assert hook(client, channel).status_code >= 500

    assert hook(client, channel).status_code == 200


def test_with_unreadable_credentials_webhooks_are_to_be_sent_again(
    client: FlaskClient, channel: Channel, keys: Keys
) -> None:
    keys("another-key-" * 4)

    assert hook(client, channel).status_code == 503


def test_the_provider_is_shown_that_the_address_is_ours(client: FlaskClient, channel: Channel) -> None:
    path = f"/hooks/post/{channel.id}"

    right = client.get(path, query_string={"secret": SECRET, "say": "<b>42</b>"})
    wrong = client.get(path, query_string={"secret": "wrong", "say": "42"})

    assert (right.status_code, right.text, right.mimetype) == (200, "<b>42</b>", "text/plain")
    assert right.headers["X-Content-Type-Options"] == "nosniff"
    assert wrong.status_code == 403
