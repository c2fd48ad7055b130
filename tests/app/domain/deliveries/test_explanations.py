from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.domain.deliveries import explanations
from app.domain.deliveries.deliveries import BODY_GONE
from app.lib import clock
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from tests.conftest import Servers


@pytest.fixture(autouse=True)
def configured(servers: Servers) -> None:
    """The schedule of retries is a setting."""


def delivery(**fields: Any) -> Delivery:
    return Delivery(**{"status": "pending", "attempts": 0, "due_at": clock.now()} | fields)


def endpoint(**fields: Any) -> Endpoint:
    return Endpoint(**{"state": "active"} | fields)


LATER = clock.now() + timedelta(hours=1)
FAILED_ONCE = {
    "attempts": 1,
    "tries": 1,
    "due_at": None,
    "next_attempt_at": LATER,
    "last_error": "The server answered 503 (Service Unavailable).",
    "last_error_code": "status",
}


@pytest.mark.parametrize(
    ("given", "of", "happened", "follows"),
    [
        ({}, {}, "not been sent yet", "will be sent in a moment"),
        ({"trigger": "resend"}, {}, "resend was requested", "will be sent in a moment"),
        ({"leased_until": LATER}, {}, "not been sent yet", "in progress"),
        (FAILED_ONCE, {}, "answered 503", "The next attempt (after that 4 more) is due"),
        (FAILED_ONCE | {"attempts": 5, "tries": 5}, {}, "answered 503", "it is the last"),
        (FAILED_ONCE | {"last_error_code": "ours"}, {}, "answered 503", "spent no attempt"),
        ({}, {"probe_at": LATER, "consecutive_failures": 7}, "not been sent", "failed 7 times in a row"),
        ({}, {"ordered": True}, "not been sent", "those before it"),
        ({}, {"max_per_second": 3}, "not been sent", "at most 3 a second"),
        ({}, {"state": "stopped"}, "not been sent", "will be held"),
        ({}, {"state": "deleted"}, "not been sent", "will be cancelled"),
        ({"status": "held"}, {"state": "stopped"}, "because its endpoint has stopped", "Enable the endpoint"),
        ({"status": "held"}, {}, "enabled without releasing", "Resend it"),
        ({"status": "held"}, {"state": "deleted"}, "held", "will be cancelled"),
        ({"status": "cancelled"}, {"state": "deleted"}, "endpoint was deleted", "Nothing"),
        ({"status": "cancelled"}, {}, "was discarded", "Nothing"),
        ({"status": "delivered", "attempts": 1, "last_status": 204}, {}, "with 204, at the first attempt", "a second"),
        ({"status": "delivered", "attempts": 3, "last_status": 200}, {}, "at attempt 3", "Nothing more is sent"),
        (FAILED_ONCE | {"status": "failed", "attempts": 6}, {}, "All 6 attempts failed", "Resend it"),
        (FAILED_ONCE | {"status": "failed", "last_error_code": "gone"}, {}, "That is final", "Resend it"),
        ({"status": "failed", "last_error": BODY_GONE}, {}, BODY_GONE, "cannot be sent again"),
    ],
)
def test_an_outlook_says_what_happened_and_what_comes_next(
    given: dict[str, Any], of: dict[str, Any], happened: str, follows: str
) -> None:
    explanation = explanations.of(delivery(**given), endpoint(**of))

    assert happened in explanation.happened
    assert follows in explanation.next


def test_what_has_a_time_says_it_and_only_what_changes_soon_moves() -> None:
    waiting, sent = explanations.of(delivery(**FAILED_ONCE), endpoint()), explanations.of(delivery(), endpoint())

    assert (waiting.at, waiting.is_moving) == (LATER, False)
    assert (sent.at, sent.is_moving) == (None, True)


@pytest.mark.parametrize("status", ["pending", "held"])
def test_an_endpoint_that_is_gone_cancels(status: str) -> None:
    assert "will be cancelled" in explanations.of(delivery(status=status), None).next
