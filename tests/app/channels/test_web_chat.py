"""Web chat: the signature of a visitor's identity, and which pages may show the chat."""

from __future__ import annotations

import hashlib
import hmac

import jsonschema
import pytest

from app.channels.base import Account
from app.channels.web_chat import WebChat

KIND = WebChat()


def account(**credentials: str) -> Account:
    return Account("chn_1", {"origins": []}, credentials, "", "https://bellhop.example/hooks/web_chat/chn_1")


def test_an_identity_is_signed_with_hmac_sha256_of_the_channels_secret():
    signature = hmac.new(b"s3cret", b"user-7", hashlib.sha256).hexdigest()

    assert KIND.is_signed(account(secret="s3cret"), "user-7", signature)
    assert not KIND.is_signed(account(secret="s3cret"), "user-8", signature)
    assert not KIND.is_signed(account(secret="another"), "user-7", signature)
    assert not KIND.is_signed(account(secret="s3cret"), "user-7", "")
    assert not KIND.is_signed(account(secret="s3cret"), "user-7", "ü")


def test_no_identity_counts_while_the_channel_has_no_secret():
    signature = hmac.new(b"", b"user-7", hashlib.sha256).hexdigest()

    assert not KIND.is_signed(account(), "user-7", signature)
    assert not KIND.is_signed(account(secret=""), "user-7", signature)


def test_a_new_channel_gets_a_secret_that_nobody_can_guess():
    first, second = KIND.fresh_credentials({}), KIND.fresh_credentials({})

    assert first != second
    assert len(first["secret"]) > 40


@pytest.mark.parametrize("origin", ["https://shop.example", "http://localhost:3000", "https://[::1]:8443"])
def test_an_origin_is_a_scheme_a_host_and_perhaps_a_port(origin):
    jsonschema.validate({"origins": [origin]}, KIND.settings_schema)


@pytest.mark.parametrize(
    "origin", ["*", "null", "shop.example", "https://shop.example/", "https://a@shop.example", "javascript:1", ""]
)
def test_anything_else_is_no_origin(origin):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"origins": [origin]}, KIND.settings_schema)
