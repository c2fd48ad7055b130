"""WhatsApp over a played Cloud API; requests are compared with those of pywa."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import pywa
import pywa.types as pywa_types
from jsonschema import Draft202012Validator

from app.channels.base import File, Outcome, Outgoing, Verdict
from app.channels.inbound import Media
from app.channels.whatsapp import WhatsApp
from app.outbound import answered
from tests.app.channels.asking import ask, fetch, send
from tests.providers.base import Reply, Trouble
from tests.providers.whatsapp import (
    CREDENTIALS,
    NUMBER,
    PHONE,
    USER_ID,
    WhatsAppServer,
    account_at,
    refusal,
)

ACCOUNT = account_at("https://graph.example/v23.0")
KIND = WhatsApp()
PNG = File("hat.png", "image/png", b"\x89PNG\r\n\x1a\n\r\n--x--\r\n")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WhatsAppServer]:
    server = WhatsAppServer(tmp_path_factory.mktemp("whatsapp"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(started: WhatsAppServer) -> WhatsAppServer:
    started.calls.clear()
    started.messages.clear()
    started.read.clear()
    started.always(None)
    started.cut_before(False)
    return started


def outgoing(text: str | None = "Hello", **fields: Any) -> Outgoing:
    return Outgoing("msg_1", fields.pop("to", PHONE), text, **fields)


def theirs(server: WhatsAppServer) -> pywa.WhatsApp:
    """pywa's client of the played server."""
    trusting = ssl.create_default_context(cafile=str(server.certificates.ca_file))
    client = pywa.WhatsApp(
        phone_id=NUMBER, token=CREDENTIALS["access_token"], session=httpx.Client(verify=trusting), server=None
    )
    client.api._session.base_url = server.api_url
    return client


def test_a_text_is_sent_as_pywa_sends_it(server: WhatsAppServer) -> None:
    verdict = send(server, KIND, server.account, outgoing("Grüße"))
    sent = theirs(server).send_text(to=PHONE, text="Grüße", tracker="msg_1")
    ours_seen, theirs_seen = server.called("/messages")
    assert verdict.outcome is Outcome.SENT
    assert [verdict.provider_id, sent.id] == list(server.messages)
    assert (ours_seen.method, ours_seen.path) == (theirs_seen.method, theirs_seen.path)
    assert {"preview_url": False} | ours_seen.json["text"] == {"preview_url": False} | theirs_seen.json["text"]
    assert _without(ours_seen.json, "text") == _without(theirs_seen.json, "text")


def test_the_account_is_the_number_that_the_answer_is_about() -> None:
    number, other = (answered(200, json.dumps({"id": each}).encode()) for each in (NUMBER, "999"))
    assert KIND.connected(ACCOUNT, [number])[1] == NUMBER
    assert KIND.connected(ACCOUNT, [other])[1] == "999"
    assert KIND.connected(ACCOUNT, [answered(200, b"{}")])[1] == NUMBER


def test_somebody_who_hides_the_phone_is_answered_as_pywa_does(server: WhatsAppServer) -> None:
    send(server, KIND, server.account, outgoing(to=USER_ID))
    theirs(server).send_text(to=USER_ID, text="Hello", tracker="msg_1")
    ours_seen, theirs_seen = [call.json for call in server.called("/messages")]
    assert ours_seen["recipient"] == USER_ID
    assert _without(ours_seen, "text") == _without(theirs_seen, "text")


def test_a_number_is_sent_without_its_plus(server: WhatsAppServer) -> None:
    send(server, KIND, server.account, outgoing(to=f"+{PHONE}"))
    assert server.called("/messages")[0].json["to"] == PHONE


def test_a_file_is_uploaded_whole_and_sent_by_its_identifier(server: WhatsAppServer) -> None:
    verdict = send(server, KIND, server.account, outgoing("A hat", file=PNG))
    [sent] = server.messages.values()
    stored = server.media[sent["image"]["id"]]
    assert verdict.outcome is Outcome.SENT
    assert (stored.name, stored.content_type, stored.content) == (PNG.name, PNG.content_type, PNG.content)
    theirs(server).send_image(to=PHONE, image=sent["image"]["id"], caption="A hat", tracker="msg_1")
    assert server.called("/messages")[0].json == server.called("/messages")[1].json


@pytest.mark.parametrize(
    ("content_type", "size", "text", "kind"),
    [
        ("image/png", 10, None, "image"),
        ("image/png", 6 * 1024 * 1024, None, "document"),
        ("image/gif", 10, None, "document"),
        ("video/mp4", 10, "Look", "video"),
        ("audio/ogg", 10, None, "audio"),
        ("audio/ogg", 10, "Listen", "document"),
        ("application/pdf", 10, "The bill", "document"),
    ],
)
def test_a_file_is_shown_as_what_the_api_takes(content_type: str, size: int, text: str | None, kind: str) -> None:
    file = File("it", content_type, b"x" * size)
    document = json.loads(KIND.sending(ACCOUNT, outgoing(text, file=file), "123").body)
    assert document["type"] == kind
    assert document[kind].get("caption") == text
    assert document[kind].get("filename") == ("it" if kind == "document" else None)


def test_a_file_name_cannot_leave_its_header(server: WhatsAppServer) -> None:
    file = File('a"; name="type"\r\n\r\nx', "text/plain", b"content")
    send(server, KIND, server.account, outgoing(None, file=file))
    [sent] = server.messages.values()
    assert server.media[sent["document"]["id"]].content == b"content"


def buttons_of(count: int) -> list[dict[str, str]]:
    return [{"id": f"{number:x<64}", "label": f"{number:-<20}"} for number in range(count)]


@pytest.mark.parametrize("count", [1, 3])
def test_up_to_three_buttons_are_sent_as_pywa_sends_them(server: WhatsAppServer, count: int) -> None:
    send(server, KIND, server.account, outgoing("Which one?", buttons=buttons_of(count)))
    theirs(server).send_text(
        to=PHONE,
        text="Which one?",
        buttons=[pywa_types.Button(each["label"], each["id"]) for each in buttons_of(count)],
        tracker="msg_1",
    )
    ours_seen, theirs_seen = server.called("/messages")
    assert len(server.messages) == 2
    assert ours_seen.json == theirs_seen.json


@pytest.mark.parametrize("count", [4, 10])
def test_more_buttons_are_a_list_as_pywa_sends_it(server: WhatsAppServer, count: int) -> None:
    text = "x" * KIND.most_text(0, count)
    rows = [pywa_types.SectionRow(each["label"], each["id"]) for each in buttons_of(count)]
    send(server, KIND, server.account, outgoing(text, buttons=buttons_of(count)))
    sections = pywa_types.SectionList("Options", [pywa_types.Section("", rows)])
    theirs(server).send_text(to=PHONE, text=text, buttons=sections, tracker="msg_1")
    ours_seen, theirs_seen = [call.json for call in server.called("/messages")]
    assert len(server.messages) == 2
    assert theirs_seen["interactive"]["action"]["sections"][0].pop("title") == ""  # only several need titles
    assert ours_seen == theirs_seen


def test_buttons_with_a_file_are_sent_as_pywa_sends_them(server: WhatsAppServer) -> None:
    text = "x" * KIND.most_text(1, 3)
    verdict = send(server, KIND, server.account, outgoing(text, file=PNG, buttons=buttons_of(3)))
    [sent] = server.messages.values()
    image = sent["interactive"]["header"]["image"]["id"]
    assert verdict.outcome is Outcome.SENT
    assert server.media[image].content == PNG.content
    their_buttons = [pywa_types.Button(each["label"], each["id"]) for each in buttons_of(3)]
    theirs(server).send_image(to=PHONE, image=image, caption=text, buttons=their_buttons, tracker="msg_1")
    assert server.called("/messages")[0].json == server.called("/messages")[1].json


@pytest.mark.parametrize(
    ("content_type", "kind"), [("audio/ogg", "document"), ("image/gif", "document"), ("video/mp4", "video")]
)
def test_a_file_above_buttons_is_of_a_kind_that_the_api_takes(content_type: str, kind: str) -> None:
    file = File("it", content_type, b"x")
    document = json.loads(KIND.sending(ACCOUNT, outgoing("Take it?", file=file, buttons=buttons_of(1)), "123").body)
    filename = {"filename": "it"} if kind == "document" else {}
    assert document["interactive"]["header"] == {"type": kind, kind: {"id": "123", **filename}}


@pytest.mark.parametrize("language", ["en_US", {"code": "en_US"}])
def test_a_template_passes_with_its_parts(server: WhatsAppServer, language: Any) -> None:
    parts = [{"type": "body", "parameters": [{"type": "text", "text": "Ada"}]}]
    template = {"name": "order_ready", "language": language, "components": parts}
    send(server, KIND, server.account, outgoing(None, template=template))
    [sent] = server.messages.values()
    assert sent["type"] == "template"
    assert sent["template"] == {"name": "order_ready", "language": {"code": "en_US"}, "components": parts}


def test_parameters_of_a_template_are_in_one_line() -> None:
    said = {"type": "text", "text": " Anna\n\tMaria     Lee\u00a0"}
    payload = {"type": "payload", "payload": "a\nb  c"}
    parts = [{"type": "body", "parameters": [said, payload]}, {"type": "carousel", "cards": [{"components": [said]}]}]
    template = {"name": "autumn", "language": "de", "components": parts}
    document = json.loads(KIND.sending(ACCOUNT, outgoing(None, template=template), None).body)
    flat = {"type": "text", "text": "Anna Maria Lee"}
    assert document["template"]["components"] == [
        {"type": "body", "parameters": [flat, payload]},
        {"type": "carousel", "cards": [{"components": [flat]}]},
    ]


@pytest.mark.parametrize(
    ("kind", "text", "is_refused"),
    [
        *(("body", "", True), ("body", " \n", True), ("body", "Anna", False), ("header", "a" * 60, False)),
        *(("body", "a" * 1024 + "  ", False), ("body", "a" * 1025, True), ("HEADER", "a" * 61, True)),
    ],
)
def test_a_parameter_that_is_empty_or_too_long_is_known_to_be_refused(
    kind: str, text: str, *, is_refused: bool
) -> None:
    template = {"name": "autumn", "components": [{"type": kind, "parameters": [{"type": "text", "text": text}]}]}
    assert (KIND.template_fault(template) is not None) is is_refused


@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("currency", "fallback_value"), ("image", "link"), ("coupon_code", "coupon_code"), ("payload", "payload")),
        ("text", "text"),
    ],
)
def test_no_part_of_a_parameter_may_be_empty(kind: str, name: str, text: str) -> None:
    parameter = {"type": kind, name: text} if kind == name else {"type": kind, kind: {name: text}}
    component = {"type": "button", "parameters": [parameter]}
    template = {"name": "autumn", "components": [{"type": "carousel", "cards": [{"components": [component]}]}]}
    assert KIND.template_fault(template) == "A parameter of the template is empty."


def test_addresses_and_amounts_in_a_template_are_in_one_line() -> None:
    image = {"type": "image", "image": {"link": "https://shop.example/a.png\n"}}
    price = {"type": "currency", "currency": {"fallback_value": "5\u00a0\n €", "code": "EUR", "amount_1000": 5000}}
    template = {"name": "autumn", "language": "de", "components": [{"type": "body", "parameters": [image, price]}]}
    document = json.loads(KIND.sending(ACCOUNT, outgoing(None, template=template), None).body)
    image["image"]["link"] = "https://shop.example/a.png"
    price["currency"]["fallback_value"] = "5 €"
    assert document["template"]["components"] == [{"type": "body", "parameters": [image, price]}]


@pytest.mark.parametrize("components", [None, 7, "a", {"type": "body"}, [7, None]])
def test_components_that_are_none_are_no_fault(components: object) -> None:
    assert KIND.template_fault({"name": "autumn", "components": components}) is None


@pytest.mark.parametrize(("given", "sent"), [("text/csv", "text/plain"), ("image/png", "image/png")])
def test_of_texts_only_plain_ones_are_uploaded(given: str, sent: str) -> None:
    request = KIND.preparing(ACCOUNT, outgoing(None, file=File("prices.csv", given, b"a,b")))
    assert request is not None
    assert (given == sent or given.encode() not in request.body, sent.encode() in request.body) == (True, True)


def test_a_message_is_marked_as_read_as_pywa_does_it(server: WhatsAppServer) -> None:
    request = KIND.reading(server.account, PHONE, "wamid.1")
    assert request is not None
    ask(server, request)
    theirs(server).mark_message_as_read("wamid.1")
    assert server.read == ["wamid.1", "wamid.1"]


@pytest.mark.parametrize("code", [0, 10, 190, 200, 299, 131005])
def test_credential_codes_ask_for_new_credentials(server: WhatsAppServer, code: int) -> None:
    server.happens(refusal(code), path="/messages")
    assert send(server, KIND, server.account, outgoing()).outcome is Outcome.UNAUTHORIZED


@pytest.mark.parametrize("code", [4, 80007, 130429, 131048, 133016])
def test_a_throttle_pauses_the_channel(server: WhatsAppServer, code: int) -> None:
    server.happens(refusal(code), path="/messages")
    verdict = send(server, KIND, server.account, outgoing())
    assert (verdict.outcome, verdict.pauses) == (Outcome.LATER, "channel")
    assert verdict.pause_seconds > 0


def test_too_many_messages_to_one_contact_pause_the_conversation(server: WhatsAppServer) -> None:
    server.happens(refusal(131056), path="/messages")
    verdict = send(server, KIND, server.account, outgoing())
    assert (verdict.outcome, verdict.pauses, verdict.pause_seconds) == (Outcome.LATER, "conversation", 6.0)


@pytest.mark.parametrize("reply", [refusal(130429, **{"Retry-After": "17"}), Reply(429, None, {"Retry-After": "17"})])
def test_the_pause_that_is_asked_for_is_kept(server: WhatsAppServer, reply: Reply) -> None:
    server.happens(reply, path="/messages")
    assert send(server, KIND, server.account, outgoing()).pause_seconds == 17


@pytest.mark.parametrize(
    ("code", "ours", "is_opt_out"),
    [
        (131047, "window_closed", False),
        (131026, "undeliverable", False),
        (131050, "opted_out", True),
        (132001, "template_refused", False),
        (100, "refused", False),
        (999_999, "refused", False),
    ],
)
def test_other_refusals_fail_the_message_alone(server: WhatsAppServer, code: int, ours: str, is_opt_out: bool) -> None:
    server.happens(refusal(code, "More than 24 hours have passed."), path="/messages")
    verdict = send(server, KIND, server.account, outgoing())
    assert verdict == Verdict(
        Outcome.FAILED, None, ours, f"More than 24 hours have passed. ({code})", is_opt_out=is_opt_out
    )


@pytest.mark.parametrize(
    "happening",
    [
        Trouble.HANG,
        Trouble.CUT_AFTER,
        Trouble.CUT_UNTAKEN,
        Reply(500, b"<html>"),
        Reply(200, b"{"),
        Reply(200, {"messages": []}),
        refusal(131000, status=500),
    ],
)
def test_what_may_have_been_taken_is_unknown(server: WhatsAppServer, happening: Any) -> None:
    server.happens(happening, path="/messages")
    assert send(server, KIND, server.account, outgoing()).outcome is Outcome.UNKNOWN


def test_what_has_not_left_is_tried_again(server: WhatsAppServer) -> None:
    server.cut_before(True)
    assert send(server, KIND, server.account, outgoing()).outcome is Outcome.LATER
    server.cut_before(False)
    assert not server.messages


@pytest.mark.parametrize("happening", [Trouble.CUT_AFTER, Reply(503), Reply(200, b"{")])
def test_an_upload_that_fails_is_repeated_as_nobody_sees_it(server: WhatsAppServer, happening: Any) -> None:
    server.happens(happening, path="/media")
    assert send(server, KIND, server.account, outgoing(file=PNG)).outcome is Outcome.LATER
    assert not server.messages


def test_a_channel_is_connected_if_the_token_reaches_the_number(server: WhatsAppServer) -> None:
    account = server.account
    verdict, name = KIND.connected(account, ask(server, *KIND.connecting(account)))
    assert (verdict.outcome, name) == (Outcome.SENT, NUMBER)
    server.happens(refusal(190, status=401))
    assert KIND.connected(account, ask(server, *KIND.connecting(account)))[0].outcome is Outcome.UNAUTHORIZED
    server.happens(refusal(100))
    assert KIND.connected(account, ask(server, *KIND.connecting(account)))[0].outcome is Outcome.FAILED
    server.happens(Reply(404, b"Not found"))
    assert KIND.connected(account, ask(server, *KIND.connecting(account)))[0].outcome is Outcome.SENT


def test_a_file_is_located_and_fetched_with_the_token(server: WhatsAppServer) -> None:
    account = server.account
    media = Media(server.keep("voice.ogg", "audio/ogg", b"OggS"))
    [answer] = ask(server, KIND.locating(account, media))
    assert fetch(server, KIND, account, KIND.located(account, answer)) == b"OggS"


def test_a_file_that_is_gone_is_not_looked_for_again(server: WhatsAppServer) -> None:
    account = server.account
    [answer] = ask(server, KIND.locating(account, Media("../1?x")))
    located = KIND.located(account, answer)
    assert isinstance(located, Verdict)
    assert located.outcome is Outcome.FAILED
    assert server.calls[0].path == "/v23.0/../1?x"


def test_only_the_verify_token_answers_the_challenge() -> None:
    account = ACCOUNT
    query = {"hub.mode": "subscribe", "hub.verify_token": CREDENTIALS["verify_token"], "hub.challenge": "1158201444"}
    assert KIND.challenged(account, query) == "1158201444"
    for wrong in ({"hub.verify_token": "verify-mé"}, {"hub.verify_token": ""}, {"hub.mode": "unsubscribe"}):
        assert KIND.challenged(account, query | wrong) is None
    assert KIND.challenged(account, {}) is None


def test_its_schemas_take_what_the_contract_shows() -> None:
    credentials = Draft202012Validator(KIND.credentials_schema)
    settings = Draft202012Validator(KIND.settings_schema)
    assert credentials.is_valid(CREDENTIALS)
    assert not credentials.is_valid({"access_token": "x"})
    assert not credentials.is_valid(CREDENTIALS | {"access_token": "x\r\nHost: evil"})
    assert settings.is_valid({"phone_number_id": NUMBER})
    assert not settings.is_valid({"phone_number_id": "../me"})


def test_no_secret_is_shown_by_accident(server: WhatsAppServer) -> None:
    account = server.account
    shown = repr((account, KIND.sending(account, outgoing(), None), KIND.connecting(account)))
    assert not any(secret in shown for secret in CREDENTIALS.values())


def _without(document: dict[str, Any], name: str) -> dict[str, Any]:
    return {member: value for member, value in document.items() if member != name}
