"""Attacks by who has no token: visitors of web chats, and whoever knows the address of a provider's hook."""

from __future__ import annotations

import gzip
import io
import time
import uuid
from typing import Any

import marshmallow
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.api import chats
from app.models.channels import Channel
from tests.app.api.test_attacks import BROKEN, NASTY, TOGETHER
from tests.app.api.test_chats import Page
from tests.app.domain.channels.test_hooks import connected, headers
from tests.bounding import set_bound
from tests.cast import Api, everything_stored, one
from tests.chatting import KEY, make_chat
from tests.surface import INSIDE

BODIES: dict[str, type[marshmallow.Schema]] = {
    "messages": chats.MessageBody,
    "identify": chats.IdentifyBody,
    "read": chats.ReadBody,
}
VALID = {"id": "m1", "text": "Hi", "key": KEY, "message_id": "msg_x", "user": {"id": "u1", "signature": "x"}}


def sound(answer: TestResponse, about: object) -> TestResponse:
    """Asserts what holds for every answer: it is none of ours that broke, and it shows nothing of the inside."""
    where = f"{about}: {answer.status_code} {answer.text[:300]}"
    assert answer.status_code < 500, where
    assert not INSIDE.search(str((answer.get_json(silent=True) or {}).get("detail"))), where
    return answer


@pytest.fixture
def page(client: FlaskClient, api: Api, monkeypatch: pytest.MonkeyPatch) -> Page:
    for bound in ("CHAT_REQUESTS_PER_ADDRESS", "CHAT_REQUESTS_PER_VISITOR", "NEW_VISITORS_PER_ADDRESS"):
        set_bound(monkeypatch, bound, 1_000_000)
    set_bound(monkeypatch, "NEW_VISITORS_PER_CHANNEL", 1_000_000)
    return Page(client, make_chat(api.workspace_id))


def test_all_that_strangers_send_is_tried(app: Flask) -> None:
    rules = [rule for rule in app.url_map.iter_rules() if "POST" in (rule.methods or ())]
    open_to_all = {rule.rule for rule in rules if not hasattr(app.view_functions[rule.endpoint], "restriction")}

    assert open_to_all == {
        *(f"/chat/<channel_id>/{path}" for path in (*BODIES, "typing", "uploads")),
        "/hooks/<kind>/<channel_id>",
    }


def test_broken_json_is_refused_quickly(page: Page, api: Api, subtests: pytest.Subtests) -> None:
    page.say()
    hooked = [connected(api.workspace_id, kind) for kind in ("telegram", "whatsapp")]
    before = everything_stored()

    for what, body in BROKEN.items():
        with subtests.test(what):
            began = time.thread_time()
            for path in BODIES:
                answer = sound(page.ask("POST", path, data=body, content_type="application/json"), path)
                assert answer.status_code in (400, 413, 422), path
            for channel in hooked:
                assert hook(page.client, channel, body) in (200, 400), channel.kind
            assert time.thread_time() - began < 2  # of ours, however many others want the processor

    assert everything_stored() == before


def hook(client: FlaskClient, channel: Channel, body: bytes, **more: str) -> int:
    signed = {**headers(channel.kind, body), **more}
    return sound(
        client.post(f"/hooks/{channel.kind}/{channel.id}", data=body, headers=signed), channel.kind
    ).status_code


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_compressed_body_is_not_inflated(page: Page, api: Api, coding: str) -> None:
    page.say()
    bomb = gzip.compress(b'{"id": "' + b"x" * 10_000_000 + b'"}')
    began = time.thread_time()

    for path in BODIES:
        answer = page.ask("POST", path, data=bomb, headers={"Content-Encoding": coding})
        assert answer.status_code in (400, 413)
    for kind in ("telegram", "whatsapp"):
        assert hook(page.client, connected(api.workspace_id, kind), bomb, **{"Content-Encoding": coding}) == 400

    assert time.thread_time() - began < 2
    assert one("SELECT count(*) FROM arrivals") == 1


@pytest.mark.parametrize(("is_known", "values"), [(True, NASTY), (False, TOGETHER)], ids=["a visitor", "a stranger"])
def test_a_field_may_hold_anything(page: Page, is_known: bool, values: list[Any], subtests: pytest.Subtests) -> None:
    if is_known:
        page.say()

    for path, name in [(path, name) for path, schema in BODIES.items() for name in schema().load_fields]:
        with subtests.test(f"{path} {name}"):
            body = {each: VALID[each] for each in BODIES[path]().load_fields if each in VALID}
            for value in [*values, "a\0b", "\u202e\x85", {"id": "a\0b", "signature": "é"}]:
                sent = {**body, **({"id": str(uuid.uuid4())} if "id" in body else {}), name: value}
                answer = sound(page.ask("POST", path, sent), repr(value)[:80])
                assert answer.status_code in (200, 202, 204, 401, 403, 404, 409, 413, 422), value


@pytest.mark.parametrize("name", ["X-File-Name", "X-Visitor-Key", "Origin", "Authorization", "X-Forwarded-For"])
def test_a_header_may_hold_anything(page: Page, name: str) -> None:
    for value in (
        "",
        "%00",
        "%ff%fe",
        "%ed%a0%80",
        "x" * 20_000,
        "../../a",
        "é".encode().decode("latin-1"),
        "=?utf-8?q?x?=",
    ):
        given = {"X-Visitor-Key": KEY, "X-File-Name": "a.png", name: value}
        answer = page.ask("POST", "uploads", data=b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", headers=given)
        assert sound(answer, value[:80]).status_code in (201, 401, 403, 422), value


@pytest.mark.parametrize("error", [OSError("reset"), ValueError("closed"), Exception("a chunk that is none")])
@pytest.mark.parametrize("path", [*BODIES, "uploads"])
def test_a_body_that_breaks_on_its_way_is_malformed(page: Page, path: str, error: Exception) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise error

        def readinto(self, buffer: Any) -> int:
            raise error

    page.say()
    chunked = {"wsgi.input_terminated": True, "CONTENT_LENGTH": ""}

    answer = page.ask("POST", path, input_stream=Broken(), environ_overrides=chunked)

    assert sound(answer, path).status_code == 400
