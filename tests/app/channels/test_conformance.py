"""Every kind of channel with a provider keeps the promises of the interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.channels.base import File, Outcome, Outgoing
from app.channels.inbound import Arrival, BadPayload, Blocked, Echoed, Edited, Receipt, Received
from app.channels.kinds import CHANNEL_KINDS
from app.domain.channels import buttons
from app.outbound import Reason, failed
from tests.app.channels.asking import ask, fetch, send
from tests.app.channels.conformance import ASKED_PAUSE, EXAMPLES, Example, places
from tests.providers.base import Reply, Trouble

WRONG = [None, True, 7, -1.5, 10**18, 10**40, "", "x", "\x00", "9" * 30, "ü" * 600, [], {}, [None], [[]], {"id": None}]


@pytest.fixture(scope="module", params=sorted(EXAMPLES))
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Example]:
    example = EXAMPLES[request.param](tmp_path_factory.mktemp(request.param))
    yield example
    example.provider.stop()


@pytest.fixture
def example(started: Example) -> Example:
    started.provider.calls.clear()
    return started


def say(example: Example, text: str = "Hello", **fields: Any) -> Outgoing:
    return Outgoing("msg_1", example.to, text, **fields)


def arrivals(example: Example, *bodies: bytes) -> list[Arrival]:
    return [arrival for body in bodies for arrival in example.kind.arrivals(example.account, body)]


def test_every_kind_with_a_provider_is_tested() -> None:
    ours = {name for name, kind in CHANNEL_KINDS.items() if type(kind).__module__.startswith("app.channels.")}
    assert EXAMPLES.keys() == {name for name in ours if CHANNEL_KINDS[name].has_provider}


def test_a_channel_can_be_connected_again_and_again(example: Example) -> None:
    for _ in range(2):
        answers = ask(example.provider, *example.kind.connecting(example.account))
        verdict, account = example.kind.connected(example.account, answers)
        assert verdict.outcome is Outcome.SENT
        assert account


@pytest.mark.parametrize("happening", ["no_credentials", Trouble.CUT_AFTER, Reply(503)])
def test_only_credentials_that_are_not_accepted_ask_for_others(example: Example, happening: Any) -> None:
    is_refused = happening == "no_credentials"
    example.provider.happens(example.no_credentials if is_refused else happening)
    answers = ask(example.provider, *example.kind.connecting(example.account)[:1])
    verdict, _ = example.kind.connected(example.account, answers)
    assert verdict.outcome is (Outcome.UNAUTHORIZED if is_refused else Outcome.LATER)
    assert verdict.detail


def test_a_text_arrives_as_it_is(example: Example) -> None:
    text = "Grüße, «Ada» 👩🏽‍💻\n\tzwei & <b>drei</b>"
    verdict = send(example.provider, example.kind, example.account, say(example, text))
    assert verdict.outcome is Outcome.SENT
    assert verdict.provider_id
    assert example.texts()[-1] == text


def test_the_longest_text_is_taken(example: Example) -> None:
    text = "x" * example.kind.most_characters
    assert example.kind.length(text) == example.kind.most_characters
    assert send(example.provider, example.kind, example.account, say(example, text)).outcome is Outcome.SENT


@pytest.mark.parametrize("count", [1, 3, 4, buttons.MOST])
def test_buttons_are_offered_below_the_longest_text(example: Example, count: int) -> None:
    offers = [{"id": f"{number:x<64}", "label": f"{number:é<20}"} for number in range(count)]
    text = "x" * example.kind.most_text(0, count)
    assert (
        send(example.provider, example.kind, example.account, say(example, text, buttons=offers)).outcome
        is Outcome.SENT
    )
    assert example.offered() == [(each["id"], each["label"]) for each in offers]


def test_a_button_that_is_pressed_is_a_message(example: Example) -> None:
    for arrival in arrivals(example, *example.pressed("yes", "Yes, please")):
        assert isinstance(arrival, Received)
        assert (arrival.text, arrival.button_id, arrival.peer) == ("Yes, please", "yes", example.to)


def test_messages_have_identifiers_of_their_own(example: Example) -> None:
    verdicts = [send(example.provider, example.kind, example.account, say(example)) for _ in range(3)]
    assert len({verdict.provider_id for verdict in verdicts}) == 3


@pytest.mark.parametrize("content_type", ["image/png", "application/pdf", "video/mp4", "audio/mpeg"])
def test_a_file_arrives_whole(example: Example, content_type: str) -> None:
    content = b"\x00\r\n--boundary--\r\n" + bytes(range(256))
    file = File('Ünïcode "name".bin', content_type, content)
    verdict = send(example.provider, example.kind, example.account, replace(say(example), file=file))
    assert verdict.outcome is Outcome.SENT
    assert example.files()[-1] == content


def test_a_throttle_asks_for_the_pause_that_the_provider_names(example: Example) -> None:
    example.provider.happens(example.throttle, path=example.sends_at)
    verdict = send(example.provider, example.kind, example.account, say(example))
    assert (verdict.outcome, verdict.pause_seconds) == (Outcome.LATER, ASKED_PAUSE)


def test_a_message_is_refused_for_its_own_reason(example: Example) -> None:
    example.provider.happens(example.refusal, path=example.sends_at)
    verdict = send(example.provider, example.kind, example.account, say(example))
    assert (verdict.outcome, verdict.is_opt_out) == (Outcome.FAILED, False)
    assert verdict.code
    assert verdict.detail


def test_a_contact_that_wants_no_messages_has_opted_out(example: Example) -> None:
    example.provider.happens(example.opt_out, path=example.sends_at)
    verdict = send(example.provider, example.kind, example.account, say(example))
    assert (verdict.outcome, verdict.is_opt_out) == (Outcome.FAILED, True)


def test_credentials_can_be_refused_while_sending(example: Example) -> None:
    example.provider.happens(example.no_credentials, path=example.sends_at)
    verdict = send(example.provider, example.kind, example.account, say(example))
    assert (verdict.outcome, verdict.is_opt_out) == (Outcome.UNAUTHORIZED, False)


@pytest.mark.parametrize(
    ("happening", "code"),
    [
        (Trouble.HANG, "no_answer"),
        (Trouble.CUT_AFTER, "no_answer"),
        (Trouble.CUT_UNTAKEN, "no_answer"),
        (Reply(500, b"<html>"), "provider_error"),
        (Reply(502), "provider_error"),
        (Reply(200, b"{"), "unreadable"),
    ],
    ids=str,
)
def test_the_outcome_of_a_request_without_a_proper_answer_is_unknown_with_the_same_code_for_every_provider(
    example: Example, happening: Any, code: str
) -> None:
    example.provider.happens(happening, path=example.sends_at)
    verdict = send(example.provider, example.kind, example.account, say(example))
    assert (verdict.outcome, verdict.code) == (Outcome.UNKNOWN, code)
    assert verdict.detail


def test_what_has_not_left_is_tried_again(example: Example) -> None:
    taken = len(example.texts())
    example.provider.cut_before(True)
    verdict = send(example.provider, example.kind, example.account, say(example))
    example.provider.cut_before(False)
    assert (verdict.outcome, verdict.code, len(example.texts())) == (Outcome.LATER, "unreachable", taken)
    assert verdict.pause_seconds > 0


@pytest.mark.parametrize("reason", list(Reason), ids=lambda reason: reason.name)
def test_no_answer_is_ever_a_success_or_about_credentials(example: Example, reason: Reason) -> None:
    for may_have_arrived in (True, False):
        verdict = example.kind.sent(say(example), failed(reason, "it", may_have_arrived=may_have_arrived))
        assert verdict.outcome is (Outcome.UNKNOWN if may_have_arrived else Outcome.LATER)


def test_a_message_comes_in_with_whom_to_answer(example: Example) -> None:
    [received] = arrivals(example, *example.received("Hi\nthere"))
    assert isinstance(received, Received)
    assert (received.text, received.peer) == ("Hi\nthere", example.to)
    assert received.sender
    assert abs(received.at - datetime.now(UTC)) < timedelta(hours=1)
    answer = replace(say(example), to=received.peer)
    assert send(example.provider, example.kind, example.account, answer).outcome is Outcome.SENT


def test_a_webhook_that_is_repeated_brings_the_same_key(example: Example) -> None:
    bodies = [*example.received("Hi"), *example.edited("Hello"), *example.echoed("Yes"), *example.opted_out()]
    once, again = arrivals(example, *bodies), arrivals(example, *bodies)
    assert once == again
    assert len({arrival.key for arrival in once}) == len(once)
    assert all(0 < len(arrival.key) <= 255 for arrival in once)


def test_a_press_that_is_repeated_brings_the_same_key(example: Example) -> None:
    for body in example.pressed("yes", "Yes"):
        first, again = arrivals(example, body, body)
        assert first.key == again.key


def test_an_edit_names_the_message_that_it_changes(example: Example) -> None:
    first, edited = arrivals(example, *example.edited("Hello"))
    assert isinstance(first, Received)
    assert isinstance(edited, Edited)
    assert (edited.provider_id, edited.sender, edited.text) == (first.provider_id, first.sender, "Hello")


def test_what_the_business_writes_elsewhere_is_an_echo_to_its_recipient(example: Example) -> None:
    [received] = arrivals(example, *example.received("Hi"))
    for echoed in arrivals(example, *example.echoed("On my way")):
        assert isinstance(echoed, Echoed)
        assert isinstance(received, Received)
        assert (echoed.recipient, echoed.peer, echoed.text) == (received.sender, received.peer, "On my way")


def test_receipts_name_their_message_and_are_kept_apart(example: Example) -> None:
    verdict = send(example.provider, example.kind, example.account, say(example))
    assert verdict.provider_id
    statuses = ("sent", "delivered", "read", "failed")
    bodies = [body for each in statuses for body in example.receipt(verdict.provider_id, "msg_1", each)]
    receipts = arrivals(example, *bodies)
    assert all(isinstance(each, Receipt) and each.provider_id == verdict.provider_id for each in receipts)
    assert len({each.key for each in receipts}) == len(receipts) == len(bodies)
    assert [each.status for each in receipts if isinstance(each, Receipt)] == list(statuses)[: len(receipts)]


def test_a_contact_opts_out_at_the_provider(example: Example) -> None:
    [received] = arrivals(example, *example.received("Hi"))
    [blocked] = arrivals(example, *example.opted_out())
    assert isinstance(blocked, Blocked)
    assert isinstance(received, Received)
    assert (blocked.sender, blocked.is_blocked) == (received.sender, True)


def test_a_file_of_a_contact_is_located_and_fetched(example: Example) -> None:
    content = b"%PDF-1.7\x00\xff"
    [received] = arrivals(example, *example.with_file(content))
    assert isinstance(received, Received)
    [media] = received.media
    [answer] = ask(example.provider, example.kind.locating(example.account, media))
    located = example.kind.located(example.account, answer)
    assert fetch(example.provider, example.kind, example.account, located) == content


def test_groups_are_ignored(example: Example) -> None:
    assert arrivals(example, *example.in_group("Hi all")) == []


def test_only_the_provider_can_send_webhooks(example: Example) -> None:
    [body] = example.received("Hi")
    headers = dict(example.headers(body))
    assert example.kind.is_genuine(example.account, headers, body)
    assert not example.kind.is_genuine(example.account, {}, body)
    for name, value in headers.items():
        for wrong in ("", "ü", value[:-1], value.swapcase() + "x"):
            forged = {**headers, name: wrong}
            is_signature = name.startswith("x-")
            assert not (is_signature and example.kind.is_genuine(example.account, forged, body))


def test_without_a_secret_every_webhook_is_refused(example: Example) -> None:
    [body] = example.received("Hi")
    for credentials in ({}, dict.fromkeys(example.account.credentials, "")):
        bare = replace(example.account, credentials=credentials)
        assert not example.kind.is_genuine(bare, example.headers(body), body)
        assert not example.kind.is_genuine(bare, {}, body)
        assert example.kind.challenged(bare, {"hub.mode": "subscribe", "hub.challenge": "1"}) is None


@given(data=st.data())
def test_a_malformed_webhook_is_refused_and_breaks_nothing(started: Example, data: st.DataObject) -> None:
    """Any part of a real webhook is replaced by something else, or is not there."""
    bodies = [
        *started.received("Hi"),
        *started.pressed("yes", "Yes"),
        *started.edited("Hello"),
        *started.echoed("Yes"),
        *started.receipt("wamid.1", "msg_1", "failed"),
        *started.opted_out(),
        *started.moved(),
        *started.with_file(b"x"),
    ]
    document = json.loads(data.draw(st.sampled_from(bodies)))
    holder, name = data.draw(st.sampled_from(places(document)))
    if data.draw(st.booleans()):
        holder[name] = deepcopy(data.draw(st.sampled_from(WRONG)))
    else:
        del holder[name]
    try:
        found = started.kind.arrivals(started.account, json.dumps(document).encode())
    except BadPayload:
        return
    for arrival in found:
        assert isinstance(arrival.key, str)
        assert arrival.at.tzinfo is not None


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"1", b'"x"', b"\xff", b"{", b'{"a":1,"a":2}', b"[" * 200_000])
def test_what_is_no_object_is_refused(example: Example, body: bytes) -> None:
    with pytest.raises(BadPayload):
        example.kind.arrivals(example.account, body)


def test_a_larger_webhook_than_the_limit_is_not_the_providers(example: Example) -> None:
    [body] = example.received("x" * example.kind.most_characters)
    assert len(body) < example.kind.most_hook_bytes


def test_its_schemas_are_closed_and_valid(example: Example) -> None:
    for schema in (example.kind.credentials_schema, example.kind.settings_schema):
        assert schema is not None
        Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
    assert Draft202012Validator(example.kind.settings_schema).is_valid(example.account.settings)


def test_no_secret_is_shown_by_accident(example: Example) -> None:
    kind, account = example.kind, example.account
    requests = [*kind.connecting(account), kind.sending(account, say(example), None), *kind.disconnecting(account)]
    assert not any(secret in repr((account, requests)) for secret in account.credentials.values())
