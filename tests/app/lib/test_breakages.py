"""What is kept of an unexpected exception: enough to find its cause, little, and no secret."""

from __future__ import annotations

from typing import Any

import pytest

from app.lib import breakages, ids, json


def broke(message: str, kind: type[Exception] = RuntimeError) -> dict[str, Any]:
    try:
        raise kind(message)
    except kind as error:
        return breakages.described(error)


def test_type_message_and_the_last_frames_of_our_code_are_kept() -> None:
    with pytest.raises(Exception, match="unexpected") as caught:
        json.loads("{")

    found = breakages.described(caught.value)

    assert found["type"].endswith("JSONDecodeError")
    assert "unexpected" in found["message"]
    assert [frame.partition(":")[0] for frame in found["frames"]] == ["app/lib/json.py"]
    assert found["frames"][-1].endswith(" loads")


def test_what_postgresql_quotes_of_a_row_is_left_out() -> None:
    assert broke("duplicate key\nDETAIL:  Key (email)=(ada@example.com) already exists.")["message"] == "duplicate key"


@pytest.mark.parametrize(
    "secret",
    [
        "bhp_rmP1pBVjrQwEIWkREcErYJTaO5OEIC1NaE0k",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
        "gAAAAABlb1cD3Fr0m-Fernet_Sealed0123456789==",
    ],
)
def test_what_looks_like_a_secret_is_left_out(secret: str) -> None:
    assert broke(f"cannot use {secret!r} here")["message"] == "cannot use '…' here"
    assert secret not in broke("x" * 400 + " " + secret)["message"]
    assert secret[:25] not in broke("x" * 480 + " " + secret)["message"]


def test_a_password_in_an_address_is_left_out_and_identifiers_stay() -> None:
    contact_id = ids.new("con")

    assert broke("smtp://user:Pass@mail.example/x")["message"] == "smtp://…@mail.example/x"
    assert broke(f"no {contact_id}")["message"] == f"no {contact_id}"


def test_it_is_small_whatever_is_raised() -> None:
    def dive(depth: int) -> None:
        if depth:
            dive(depth - 1)
        raise ValueError("é" * 1_000_000)

    with pytest.raises(ValueError, match="é") as caught:
        dive(50)

    assert len(json.dumps(breakages.described(caught.value))) < 2_000
    assert broke("") == broke("\n") | {"frames": []}
    assert "\0" not in broke("a\0b")["message"]
