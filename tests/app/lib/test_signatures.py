"""Signatures, judged by Stripe's library, whose scheme is the same, and by the receiver of the stack."""

from __future__ import annotations

import hashlib
import hmac
import time

import pytest
import stripe

from app.lib import signatures
from tests.stack.signatures import is_genuine

BODY = '{"id":"evt_1","kind":"contact.created","data":{"name":"Zoë"}}'.encode()
SECRET = "whsec_s3cret-ä"


def verify(header: str, secret: str = SECRET, body: bytes = BODY, tolerance: int = 300) -> bool:
    return bool(stripe.WebhookSignature.verify_header(body.decode(), header, secret, tolerance))


def now() -> int:
    return int(time.time())


def test_a_signature_is_one_that_stripe_takes() -> None:
    assert verify(signatures.sign([SECRET], now(), BODY))


def test_a_signature_is_what_the_specification_says() -> None:
    expected = hmac.new(SECRET.encode(), b"1800000000." + BODY, hashlib.sha256).hexdigest()

    assert signatures.sign([SECRET], 1_800_000_000, BODY) == f"t=1800000000,v1={expected}"


def test_after_a_rotation_either_secret_verifies() -> None:
    header = signatures.sign(["whsec_new", "whsec_old"], now(), BODY)

    assert verify(header, "whsec_new")
    assert verify(header, "whsec_old")
    assert header.split(",")[1] == signatures.sign(["whsec_new"], int(header[2:].split(",")[0]), BODY).split(",")[1]


@pytest.mark.parametrize("age", [0, 290])
def test_a_signature_of_almost_five_minutes_is_taken(age: int) -> None:
    assert verify(signatures.sign([SECRET], now() - age, BODY))


def test_an_older_signature_is_not() -> None:
    header = signatures.sign([SECRET], now() - 302, BODY)

    with pytest.raises(stripe.SignatureVerificationError):
        verify(header)
    assert not is_genuine(SECRET, header, BODY)


@pytest.mark.parametrize(
    ("secret", "body"),
    [("whsec_other", BODY), (SECRET, BODY + b" "), (SECRET, BODY.replace(b"1", b"2"))],
    ids=["secret", "longer", "altered"],
)
def test_another_secret_or_body_does_not_verify(secret: str, body: bytes) -> None:
    header = signatures.sign([SECRET], now(), BODY)

    with pytest.raises(stripe.SignatureVerificationError):
        verify(header, secret, body)
    assert not is_genuine(secret, header, body)
