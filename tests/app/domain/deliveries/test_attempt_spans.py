"""Spans of attempts, and the header that a receiver gets of each."""

from __future__ import annotations

import pytest

from app import database
from app.domain.deliveries import lanes
from app.domain.deliveries.attempts import Outcome, claim, record
from app.lib import clock
from app.logs import tracing
from app.outbound import Answer, Reason, failed
from tests.cast import Api, one
from tests.logs import delivery
from tests.spans import Kept

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
DELIVERED = Answer(200, None, None, b"", 1_500)


@pytest.fixture
def endpoint_id(api: Api) -> str:
    """An endpoint with a delivery that is due, of an event that a request with this trace has caused."""
    endpoint_id, _ = delivery(api)
    database.rows("UPDATE events SET trace_id = %s", (TRACE,))
    return endpoint_id


def test_an_attempt_is_a_span_below_its_event_and_named_to_the_receiver(
    endpoint_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = Kept(monkeypatch)
    [dispatch] = claim(lanes.FAST, {endpoint_id: 1})

    header = dispatch.headers()["traceparent"]
    record([Outcome(dispatch, clock.now(), DELIVERED)])

    span = spans.named("POST webhook")
    event_id = one("SELECT event_id FROM deliveries WHERE endpoint_id = %s", endpoint_id)
    assert header == f"00-{TRACE}-{span.span_id:016x}-01"
    assert (span.trace_id, span.parent_id, span.error) == (TRACE, tracing.span_of(event_id), None)
    assert span.times[1] - span.times[0] == pytest.approx(1.5)
    assert span.attributes["http.response.status_code"] == 200
    assert "/" not in span.attributes["server.address"]


def test_each_attempt_has_a_span_of_its_own_and_a_failed_one_says_why(
    endpoint_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = Kept(monkeypatch)
    for answer in (failed(Reason.REFUSED), DELIVERED):
        database.rows("UPDATE deliveries SET due_at = now(), next_attempt_at = NULL WHERE status = 'pending'")
        [dispatch] = claim(lanes.FAST, {endpoint_id: 1})
        record([Outcome(dispatch, clock.now(), answer)])

    first, second = [span for span in spans.added if span.name == "POST webhook"]
    assert (first.error, second.error) == ("refused", None)
    assert first.parent_id == second.parent_id
    assert first.span_id != second.span_id


def test_an_event_that_follows_from_no_request_begins_a_trace(
    endpoint_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = Kept(monkeypatch)
    database.rows("UPDATE events SET trace_id = ''")
    [dispatch] = claim(lanes.FAST, {endpoint_id: 1})

    record([Outcome(dispatch, clock.now(), DELIVERED)])

    event_id = str(one("SELECT event_id FROM deliveries WHERE endpoint_id = %s", endpoint_id))
    assert spans.named("POST webhook").trace_id == tracing.trace_of(event_id)


def test_without_tracing_a_receiver_gets_no_header_of_it(endpoint_id: str) -> None:
    [dispatch] = claim(lanes.FAST, {endpoint_id: 1})

    assert "traceparent" not in dispatch.headers()
