"""Explanations: a delivery's state and next step, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.config import settings
from app.domain.deliveries.deliveries import BODY_GONE
from app.lib import clock
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint


@dataclass(frozen=True, slots=True)
class Explanation:
    """A delivery's state in words. `at`: when `next` occurs, if known. `is_moving`: may change soon."""

    happened: str
    next: str
    at: datetime | None = None
    is_moving: bool = False


def of(delivery: Delivery, endpoint: Endpoint | None) -> Explanation:
    """Explains the delivery. `endpoint`: None if its row has been removed."""
    match delivery.status:
        case "delivered":
            return _delivered(delivery)
        case "failed":
            return _failed(delivery)
        case "held":
            return _held(delivery, endpoint)
        case "cancelled":
            return Explanation(_why_cancelled(endpoint), "Nothing is sent any more.")
    if endpoint is None or endpoint.state == "deleted":
        return Explanation(_so_far(delivery), "Its endpoint was deleted, so it will be cancelled.", is_moving=True)
    if endpoint.state == "stopped":
        return Explanation(_so_far(delivery), "Its endpoint has stopped, so it will be held.", is_moving=True)
    return _pending(delivery, endpoint)


def _delivered(delivery: Delivery) -> Explanation:
    which = "the first attempt" if delivery.attempts == 1 else f"attempt {delivery.attempts}"
    status = f" with {delivery.last_status}" if delivery.last_status else ""
    return Explanation(
        f"The receiver accepted it{status}, at {which}.",
        "Nothing more is sent. Resending makes a new delivery of the same event, which the receiver gets a second"
        " time.",
    )


def _failed(delivery: Delivery) -> Explanation:
    if delivery.last_error == BODY_GONE:
        return Explanation(BODY_GONE, "It cannot be sent again.")
    by_hand = "It is not retried automatically. Resend it when the receiver is ready."
    if delivery.last_error_code == "gone":
        return Explanation(f"{_cause(delivery)} That is final.", by_hand)
    attempts = "The only attempt" if delivery.attempts == 1 else f"All {delivery.attempts} attempts"
    return Explanation(f"{attempts} failed. {_cause(delivery)}", by_hand)


def _held(delivery: Delivery, endpoint: Endpoint | None) -> Explanation:
    if endpoint is None or endpoint.state == "deleted":
        return Explanation("It is held.", "Its endpoint was deleted, so it will be cancelled.", is_moving=True)
    if endpoint.state == "stopped":
        return Explanation(
            "It is held, because its endpoint has stopped.",
            "Enable the endpoint and release its held deliveries, or enable it and resend this delivery alone.",
        )
    return Explanation(
        "It is held: its endpoint had stopped, and was enabled without releasing its held deliveries.",
        "Resend it, or enable the endpoint again with a release.",
    )


def _why_cancelled(endpoint: Endpoint | None) -> str:
    if endpoint is None or endpoint.state == "deleted":
        return "It was cancelled, because its endpoint was deleted or because it was discarded before."
    return "It was discarded. The audit log says by whom and why."


def _pending(delivery: Delivery, endpoint: Endpoint) -> Explanation:
    happened, now = _so_far(delivery), clock.now()
    if delivery.leased_until is not None and delivery.leased_until > now:
        return Explanation(happened, "An attempt is in progress.", is_moving=True)
    if delivery.next_attempt_at is not None:
        return _waiting_for_retry(delivery, happened)
    if endpoint.probe_at is not None:
        return Explanation(
            happened,
            f"It waits for its endpoint, which has failed {endpoint.consecutive_failures} times in a row: attempts go"
            " out one at a time until one succeeds. The next is due",
            max(endpoint.probe_at, now),
            is_moving=True,
        )
    if endpoint.ordered:
        return Explanation(happened, "It is sent as soon as those before it have ended.", is_moving=True)
    if endpoint.max_per_second is not None:
        return Explanation(
            happened, f"It is sent soon; its endpoint gets at most {endpoint.max_per_second} a second.", is_moving=True
        )
    return Explanation(happened, "It is due and will be sent in a moment.", is_moving=True)


def _waiting_for_retry(delivery: Delivery, happened: str) -> Explanation:
    if delivery.last_error_code == "ours":
        return Explanation(happened, "It spent no attempt. It is tried again", delivery.next_attempt_at, is_moving=True)
    left = len(settings().retry_schedule_seconds) - delivery.tries
    after = f"after that {left} more" if left > 0 else "it is the last"
    return Explanation(happened, f"The next attempt ({after}) is due", delivery.next_attempt_at)


def _so_far(delivery: Delivery) -> str:
    if delivery.last_error is not None:
        return _cause(delivery)
    if delivery.trigger == "resend":
        return "A resend was requested."
    return "It has not been sent yet."


def _cause(delivery: Delivery) -> str:
    return delivery.last_error or "The reason was not recorded."
