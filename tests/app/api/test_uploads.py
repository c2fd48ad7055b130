"""Uploads: files for messages, there when the response is."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from werkzeug.test import TestResponse

from app.api import uploads
from app.domain.channels import media
from app.lib import files
from tests.bounding import set_bound
from tests.cast import KEY, Api, one

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def upload(api: Api, content: bytes | None, query: str = "", **options: Any) -> TestResponse:
    return api.post(f"uploads{query}", data=content, **{"content_type": "application/octet-stream", **options})


def test_a_file_is_there_when_the_response_is(api: Api) -> None:
    answer = upload(api, PNG, "?name=a%20map.png", content_type="text/html")

    shown = answer.json["data"]
    assert (answer.status_code, shown) == (
        201,
        {
            "id": shown["id"],
            "name": "a map.png",
            "content_type": "image/png",
            "bytes": len(PNG),
            "expires_at": shown["expires_at"],
        },
    )
    left = datetime.fromisoformat(shown["expires_at"]) - datetime.fromisoformat(answer_time())
    assert abs(left - timedelta(hours=24)) < timedelta(minutes=5)
    assert media.load(shown["id"]).content == PNG


def answer_time() -> str:
    return str(one("SELECT now()").isoformat())


def test_a_file_needs_no_type(api: Api) -> None:
    assert api.post("uploads", data=PNG).json["data"]["content_type"] == "image/png"


@pytest.mark.parametrize(
    ("content", "query", "headers", "status"),
    [
        (b"", "", {}, 422),
        (bytes(media.MOST_BYTES + 1), "", {}, 413),
        (PNG, "?name=", {}, 422),
        (PNG, f"?name={'x' * 201}", {}, 422),
        (PNG, "?size=1", {}, 422),
        (PNG, "", {"Content-Encoding": "gzip"}, 415),
        (PNG, "", {"Idempotency-Key": "1"}, 422),
    ],
)
def test_what_cannot_be_kept_leaves_no_trace(
    api: Api, content: bytes, query: str, headers: dict[str, str], status: int
) -> None:
    assert upload(api, content, query, headers=headers).status_code == status

    assert one("SELECT count(*) FROM uploads") == 0


def test_a_file_beyond_the_allowance_is_not_read(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "STORED_PER_WORKSPACE", 10)
    read: list[bytes] = []
    monkeypatch.setattr(uploads, "spooled_body", lambda *_: read.append(b"read"))

    answer = upload(api, PNG)

    assert (answer.status_code, "Retry-After" in answer.headers, read) == (429, True, [])


def test_a_file_that_does_not_say_how_long_it_is_takes_what_it_has(api: Api) -> None:
    chunked = {"wsgi.input_terminated": True}
    answer = upload(
        api, None, input_stream=BytesIO(PNG), headers={"Transfer-Encoding": "chunked"}, environ_overrides=chunked
    )
    print(answer.text)

    assert answer.json["data"]["bytes"] == len(PNG)
    assert one("SELECT bytes FROM stored_bytes") == len(PNG)


def test_what_cannot_be_stored_takes_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> int:
        raise OSError("No space left on device")

    monkeypatch.setattr(files, "write", fail)

    assert upload(api, PNG).status_code == 503
    assert one("SELECT bytes FROM stored_bytes") == 0


@pytest.mark.parametrize("path", ["uploads", "contacts/import"])
def test_nothing_is_read_while_the_disk_is_nearly_full(api: Api, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    set_bound(monkeypatch, "LEAST_FREE", 2**60)

    answer = api.post(path, data=b'{"email":"a@example.com"}', content_type="application/jsonl")

    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    assert one("SELECT count(*) FROM uploads") + one("SELECT count(*) FROM imports") == 0


def test_what_strangers_send_keeps_no_member_from_sending(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "STORED_BY_CONTACTS", 1)

    assert upload(api, PNG).status_code == 201


def test_the_largest_file_fits(api: Api) -> None:
    assert upload(api, bytes(media.MOST_BYTES)).json["data"]["bytes"] == media.MOST_BYTES


def test_a_key_is_no_reason_to_refuse_a_file(api: Api) -> None:
    assert upload(api, PNG, key=KEY).status_code == 201
