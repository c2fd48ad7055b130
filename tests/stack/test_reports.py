"""What the receiver of `make up` says of a webhook, and what it keeps."""

import time
from pathlib import Path

from app.lib.signatures import sign
from tests.stack import kept
from tests.stack.kept import Kept
from tests.stack.receiver import Received
from tests.stack.reports import Report

SECRET = "whsec_s3cret"
BODY = b'{"id":"evt_1","kind":"contact.created"}'


def received(secret: str = SECRET, delivery: str = "dlv_1", body: bytes = BODY) -> Received:
    signature = sign([secret], int(time.time()), body)
    return Received("/any", {"X-Service-Delivery": delivery, "X-Service-Signature": signature}, body, time.time())


def test_a_webhook_is_reported_with_its_kind_and_as_verified() -> None:
    report = Report(lambda delivery_id: {"dlv_1": [SECRET]}[delivery_id])

    assert "a webhook of contact.created, signature verified  evt_1  dlv_1  attempt 1" in report.line(received())
    assert report.line(received()).endswith("attempt 2")


def test_after_a_rotation_either_secret_verifies() -> None:
    report = Report(lambda _: ["whsec_new", SECRET])

    assert "signature verified" in report.line(received())


def test_another_secret_and_an_unknown_delivery_are_reported_as_wrong() -> None:
    assert "SIGNATURE WRONG" in Report(lambda _: [SECRET]).line(received("whsec_other"))
    assert "SIGNATURE WRONG" in Report(lambda _: []).line(received())


def test_the_latest_webhooks_are_kept_byte_for_byte(tmp_path: Path) -> None:
    store = Kept(tmp_path)
    for number in range(kept.NUMBER + 1):
        store.put(received(delivery=f"dlv_{number}"))
    webhook = received(delivery="dlv_last")
    Kept(tmp_path).put(webhook)

    assert len(list(tmp_path.iterdir())) == 2 * kept.NUMBER
    assert not (tmp_path / "dlv_0.body").exists()
    assert (tmp_path / "dlv_last.body").read_bytes() == BODY
    assert (tmp_path / "dlv_last.signature").read_text() == webhook.signature


def test_a_request_that_names_no_delivery_is_not_kept(tmp_path: Path) -> None:
    store = Kept(tmp_path)
    for delivery in ("", "x", "dlv_../../x"):
        store.put(received(delivery=delivery))

    assert list(tmp_path.iterdir()) == []
