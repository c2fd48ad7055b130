"""Uploads: files for messages, there when the response is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from werkzeug.test import TestResponse

from app.domain.channels import media
from tests.cast import KEY, Api, one

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def upload(api: Api, content: bytes, query: str = "", **options: Any) -> TestResponse:
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


def test_the_largest_file_fits(api: Api) -> None:
    assert upload(api, bytes(media.MOST_BYTES)).json["data"]["bytes"] == media.MOST_BYTES


def test_a_key_is_no_reason_to_refuse_a_file(api: Api) -> None:
    assert upload(api, PNG, key=KEY).status_code == 201


def test_files_need_access_to_the_inbox(api: Api) -> None:
    assert upload(api.restricted_to("contacts"), PNG).status_code == 403
    assert upload(api.restricted_to("inbox"), PNG).status_code == 201
