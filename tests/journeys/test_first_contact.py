"""The main story: a workspace, an endpoint, a contact, and its signed webhooks, followed from request to receiver."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import stripe

from tests.journeys.audit import settle
from tests.journeys.logs import events_of
from tests.journeys.shops import Shop, open_shop
from tests.journeys.waiting import wait_until
from tests.stack.processes import ROOT
from tests.stack.receiver import Received, Receiver
from tests.stack.stack import Stack

REQUEST_ID = "first-contact.1"
ADA = {"email": "ada@example.com", "first_name": "Ada", "tags": ["vip"]}


@pytest.fixture
def shop(stack: Stack, receiver: Receiver) -> Shop:
    return open_shop(stack, receiver, "First contact")


def test_a_contact_is_upserted_and_its_events_arrive_signed_and_are_logged(
    stack: Stack, shop: Shop, receiver: Receiver
) -> None:
    answer = shop.caller().apply("POST", "contacts", ADA, {"X-Request-Id": REQUEST_ID})
    settle(stack, [shop])

    created, tagged = sorted(receiver.received, key=lambda received: json.loads(received.body)["kind"])
    assert answer.status == 201
    assert answer.headers["X-Request-Id"] == REQUEST_ID
    # Only the item itself says who else it may be.
    told = {name: value for name, value in answer.data.items() if name not in ("identities", "suggested_merges")}
    assert _kind_and_data(created) == ("contact.created", {"contact": told})
    assert _kind_and_data(tagged) == ("tag.added", {"contact": told, "tag": "vip"})
    assert _is_accepted(created, created.body, shop.secret)
    assert _is_accepted(tagged, tagged.body, shop.secret)
    assert _is_logged_as_delivered(shop, created)
    assert _is_logged_as_delivered(shop, tagged)


def test_stripes_verifier_refuses_an_altered_body_and_another_secret(
    stack: Stack, shop: Shop, receiver: Receiver
) -> None:
    shop.caller().apply("POST", "contacts", ADA)
    settle(stack, [shop])

    received = receiver.received[0]
    assert not _is_accepted(received, received.body.replace(b"Ada", b"Eve"), shop.secret)
    assert not _is_accepted(received, received.body, shop.secret + "x")


def test_the_request_id_leads_through_the_logs_of_every_process(stack: Stack, shop: Shop, receiver: Receiver) -> None:
    request_id = f"through-{shop.workspace_id}"

    shop.caller().apply("POST", "contacts", ADA, {"X-Request-Id": request_id})
    settle(stack, [shop])

    # Log lines are buffered.
    for kind, event, number in (
        ("web", "request", 1),
        ("writes", "job.finished", 1),
        ("deliveries", "delivery.attempt", 2),
    ):
        wait_until(
            lambda kind=kind, event=event, number=number: events_of(stack, kind, request_id).count(event) == number,
            20,
            f"{kind} logs it",
        )


def test_check_says_that_all_is_well_and_what_is_not(stack: Stack) -> None:
    well = _check(stack)
    stack.redis.stop()
    try:
        unwell = _check(stack)
    finally:
        stack.redis.start()

    assert well.returncode == 0
    assert all(line.startswith("ok ") for line in well.stdout.splitlines())
    assert unwell.returncode == 1
    assert "ok     database" in unwell.stdout
    assert "WRONG  redis" in unwell.stdout


def _kind_and_data(received: Received) -> tuple[str, object]:
    body = json.loads(received.body)
    return body["kind"], body["data"]


def _is_accepted(received: Received, body: bytes, secret: str) -> bool:
    try:
        return bool(stripe.WebhookSignature.verify_header(body.decode(), received.signature, secret, tolerance=300))
    except stripe.SignatureVerificationError:
        return False


def _is_logged_as_delivered(shop: Shop, received: Received) -> bool:
    delivery = shop.caller().get(f"webhooks/deliveries/{received.delivery_id}")
    [attempt] = delivery["attempts_log"]
    return (delivery["status"], delivery["body"], attempt["status"], attempt["trigger"]) == (
        "delivered",
        received.body.decode(),
        200,
        "automatic",
    )


def _check(stack: Stack) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", "check"]
    return subprocess.run(command, cwd=ROOT, env=stack.environment, capture_output=True, text=True, check=False)
