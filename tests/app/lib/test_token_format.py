from __future__ import annotations

import hashlib
import math

import pytest

from app.lib import token_format


def test_a_token_has_at_least_160_random_bits() -> None:
    assert token_format._RANDOM * math.log2(len(set(token_format._ALPHABET))) >= 160


def test_tokens_have_the_prefix_and_differ() -> None:
    made = {token_format.new() for _ in range(1000)}

    assert len(made) == 1000
    assert all(token.startswith("bhp_") and token_format.is_token(token) for token in made)


@pytest.mark.parametrize("place", range(40))
def test_a_character_altered_anywhere_breaks_the_checksum(place: int) -> None:
    token = token_format.new()
    other = "a" if token[place] != "a" else "b"

    assert not token_format.is_token(token[:place] + other + token[place + 1 :])


@pytest.mark.parametrize("text", ["", "bhp_", "x", "bhp_" + "é" * 36, "bhp_" + "0" * 36, "bhp_" + "0" * 10_000])
def test_what_is_no_token_is_told(text: str) -> None:
    assert not token_format.is_token(text)


def test_a_token_with_more_around_it_is_none() -> None:
    token = token_format.new()

    assert not token_format.is_token(token + "a")
    assert not token_format.is_token(token + "\n")
    assert not token_format.is_token(" " + token)


def test_the_digest_is_sha256() -> None:
    assert token_format.digest("bhp_x") == hashlib.sha256(b"bhp_x").digest()
