"""The Bot API: what is asked of it, and what its answers mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from app.channels.base import Account, ChannelKind, File, Outcome, Outgoing, Request, Verdict
from app.channels.inbound import Media
from app.channels.kinds import CHANNEL_KINDS
from app.lib import json
from app.outbound import Answer, Reason, answered, failed
from tests.app.channels.asking import ask
from tests.providers.base import Reply, Trouble
from tests.providers.telegram import TOKEN, Telegram, refused, throttled
from tests.providers.telegram_people import Person

KIND: ChannelKind = CHANNEL_KINDS["telegram"]
HOOK = "https://bellhop.test/hooks/telegram/chn_1"
PNG = File("shirt.png", "image/png", b"\x89PNG\r\n\x1a\n" + b"\0" * 64)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Telegram]:
    provider = Telegram(tmp_path_factory.mktemp("telegram"))
    provider.start()
    yield provider
    provider.stop()


@pytest.fixture
def telegram(server: Telegram) -> Telegram:
    """The server, with nothing of earlier tests."""
    server.calls.clear()
    server.bot.sent.clear()
    server.bot.answered.clear()
    server.bot.webhook, server.knows = None, None
    server.blocked.clear()
    server.deactivated.clear()
    return server


@pytest.fixture
def account(telegram: Telegram) -> Account:
    return account_with(telegram, TOKEN)


def account_with(telegram: Telegram, token: str) -> Account:
    return Account("chn_1", {}, KIND.fresh_credentials({"bot_token": token}), telegram.url, HOOK)


def send(telegram: Telegram, account: Account, outgoing: Outgoing) -> Verdict:
    return KIND.sent(outgoing, ask(telegram, KIND.sending(account, outgoing, None))[0])


def text(words: str = "Hello", to: str = "42") -> Outgoing:
    return Outgoing("msg_1", to, words)


# Connecting


def test_connecting_asks_who_the_bot_is_and_sets_its_webhook(telegram: Telegram, account: Account) -> None:
    verdict, number = KIND.connected(account, ask(telegram, *KIND.connecting(account)))
    assert (verdict.outcome, number) == (Outcome.SENT, "123456789")
    assert telegram.bot.webhook == {
        "url": HOOK,
        "secret_token": account.credentials["hook_secret"],
        "allowed_updates": ["message", "edited_message", "callback_query", "my_chat_member"],
    }


@pytest.mark.parametrize("token", ["123456789:another-token-that-is-no-ones", "1:short"])
def test_a_token_of_no_bot_needs_new_credentials(telegram: Telegram, token: str) -> None:
    stranger = account_with(telegram, token)
    verdict, number = KIND.connected(stranger, ask(telegram, KIND.connecting(stranger)[0]))
    assert (verdict.outcome, number) == (Outcome.UNAUTHORIZED, None)


@pytest.mark.parametrize("trouble", [Trouble.HANG, Trouble.CUT_AFTER, Reply(502, {"ok": False})])
def test_connecting_is_tried_again_whatever_happened_to_it(
    telegram: Telegram, account: Account, trouble: Trouble
) -> None:
    telegram.happens(trouble, path="/setWebhook")
    verdict, number = KIND.connected(account, ask(telegram, *KIND.connecting(account)))
    assert (verdict.outcome, number) == (Outcome.LATER, "123456789")
    assert verdict.pause_seconds > 0


def test_a_webhook_that_telegram_refuses_is_a_failure_in_its_words(telegram: Telegram, account: Account) -> None:
    sentence = "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"
    telegram.happens(refused(400, sentence), path="/setWebhook")
    verdict, _ = KIND.connected(account, ask(telegram, *KIND.connecting(account)))
    assert (verdict.outcome, verdict.detail) == (Outcome.FAILED, sentence)


def test_disconnecting_ends_the_updates(telegram: Telegram, account: Account) -> None:
    ask(telegram, *KIND.connecting(account), *KIND.disconnecting(account))
    assert telegram.bot.webhook is None


@pytest.mark.parametrize(
    ("credentials", "is_valid"),
    [
        ({"bot_token": TOKEN}, True),
        ({"bot_token": "123456789"}, False),
        ({"bot_token": f"{TOKEN}/../x"}, False),
        ({"bot_token": f"{TOKEN}\n"}, False),
        ({"bot_token": TOKEN, "hook_secret": "mine"}, False),
        ({}, False),
    ],
)
def test_only_a_token_is_taken(credentials: dict[str, str], is_valid: bool) -> None:
    assert KIND.credentials_schema is not None
    assert Draft202012Validator(KIND.credentials_schema).is_valid(credentials) == is_valid


# Sending


def test_a_text_is_sent_as_it_is(telegram: Telegram, account: Account) -> None:
    verdict = send(telegram, account, text("*Größe* <L>? 👕"))
    sent = telegram.bot.sent[0]
    assert (sent.chat_id, sent.text) == (42, "*Größe* <L>? 👕")
    assert verdict == Verdict(Outcome.SENT, f"42:{sent.message_id}")


@pytest.mark.parametrize(
    ("file", "method"),
    [
        (PNG, "sendPhoto"),
        (replace(PNG, content=b"\0" * 10_000_001), "sendDocument"),
        (File("a.mp4", "video/mp4", b"film"), "sendVideo"),
        (File("a.mp3", "audio/mpeg", b"song"), "sendAudio"),
        (File("Größe.pdf", "application/pdf", b"%PDF-1.7\r\n"), "sendDocument"),
        (File("a.html", "text/html; charset=utf-8", b"<p>"), "sendDocument"),
    ],
)
def test_a_file_is_sent_in_the_way_chats_show_it_best(
    telegram: Telegram, account: Account, file: File, method: str
) -> None:
    assert send(telegram, account, Outgoing("msg_1", "42", "Yours", file=file)).outcome is Outcome.SENT
    sent = telegram.bot.sent[0]
    assert telegram.calls[0].path.endswith(f"/{method}")
    assert sent.file is not None
    assert (sent.text, sent.file.name, sent.file.content) == ("Yours", file.name, file.content)


def test_a_file_needs_no_caption(telegram: Telegram, account: Account) -> None:
    assert send(telegram, account, Outgoing("msg_1", "42", None, file=PNG)).outcome is Outcome.SENT
    assert telegram.bot.sent[0].text is None


@pytest.mark.parametrize("file", [None, PNG])
def test_buttons_are_an_inline_keyboard(telegram: Telegram, account: Account, file: File | None) -> None:
    buttons = [{"id": "x" * 64, "label": "Ja, größer 👕"}, {"id": "no", "label": "No"}]
    outgoing = Outgoing("msg_1", "42", "Larger?", file=file, buttons=buttons)
    assert send(telegram, account, outgoing).outcome is Outcome.SENT
    [sent] = telegram.bot.sent
    keys = [[{"text": "Ja, größer 👕", "callback_data": "x" * 64}], [{"text": "No", "callback_data": "no"}]]
    assert (sent.text, sent.keyboard) == ("Larger?", {"inline_keyboard": keys})


def test_a_press_is_confirmed_and_a_message_is_not(telegram: Telegram, account: Account) -> None:
    request = KIND.reading(account, "42", "press:17")
    assert request is not None
    ask(telegram, request)
    assert telegram.bot.answered == ["17"]
    assert KIND.reading(account, "42", "42:17") is None


@pytest.mark.parametrize("trouble", [Trouble.HANG, Trouble.CUT_AFTER, Trouble.CUT_UNTAKEN])
def test_what_may_have_been_taken_is_unknown(telegram: Telegram, account: Account, trouble: Trouble) -> None:
    telegram.happens(trouble)
    assert send(telegram, account, text()).outcome is Outcome.UNKNOWN


def test_what_never_left_is_tried_again(telegram: Telegram, account: Account) -> None:
    telegram.cut_before(True)
    verdict = send(telegram, account, text())
    telegram.cut_before(False)
    assert (verdict.outcome, verdict.pauses) == (Outcome.LATER, "channel")
    assert verdict.pause_seconds > 0
    assert telegram.bot.sent == []


def test_a_fault_of_ours_is_tried_again() -> None:
    verdict = KIND.sent(text(), failed(Reason.RESOLVER, "api.telegram.org", may_have_arrived=False))
    assert verdict.outcome is Outcome.LATER


def test_a_throttle_is_obeyed(telegram: Telegram, account: Account) -> None:
    telegram.happens(throttled(17))
    verdict = send(telegram, account, text())
    assert (verdict.outcome, verdict.pause_seconds, verdict.pauses) == (Outcome.LATER, 17, "channel")


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (answered(429, b"<html>", headers=(("retry-after", "9"),)), 9),
        (answered(429, b'{"ok":false,"parameters":{"retry_after":"soon"}}'), 5),
        (answered(429), 5),
    ],
)
def test_a_throttle_that_is_not_worded_as_usual_pauses_too(answer: Answer, seconds: float) -> None:
    verdict = KIND.sent(text(), answer)
    assert (verdict.outcome, verdict.pause_seconds) == (Outcome.LATER, seconds)


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (500, b'{"ok":false,"error_code":500,"description":"Internal Server Error"}', Outcome.UNKNOWN),
        (502, b"<html>Bad Gateway</html>", Outcome.UNKNOWN),
        (503, b'{"ok":false,"error_code":503,"parameters":{"retry_after":3}}', Outcome.LATER),
        (200, b'{"ok":true,"result":{"message_id":1', Outcome.UNKNOWN),
        (200, b"<html>Hello</html>", Outcome.UNKNOWN),
        (301, b"", Outcome.FAILED),
        (400, b'{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}', Outcome.FAILED),
        (413, b"<html>Request Entity Too Large</html>", Outcome.FAILED),
        (401, b'{"ok":false,"error_code":401,"description":"Unauthorized"}', Outcome.UNAUTHORIZED),
        (401, b"<html>A proxy wants a password</html>", Outcome.FAILED),
    ],
)
def test_an_answer_says_what_came_of_the_message(status: int, body: bytes, outcome: Outcome) -> None:
    assert KIND.sent(text(), answered(status, body)).outcome is outcome


def test_a_revoked_token_asks_for_new_credentials(telegram: Telegram) -> None:
    revoked = account_with(telegram, "123456789:a-token-that-was-revoked-yesterday")
    assert send(telegram, revoked, text()).outcome is Outcome.UNAUTHORIZED


@pytest.mark.parametrize(
    ("description", "is_opt_out"),
    [
        ("Forbidden: bot was blocked by the user", True),
        ("Forbidden: user is deactivated", True),
        ("Forbidden: bot can't initiate conversation with a user", False),
        ("Forbidden: bot was kicked from the group chat", False),
        ("Forbidden: bot can't send messages to bots", False),
    ],
)
def test_only_a_contact_who_has_left_has_opted_out(
    telegram: Telegram, account: Account, description: str, is_opt_out: bool
) -> None:
    telegram.happens(refused(403, description))
    verdict = send(telegram, account, text())
    assert (verdict.outcome, verdict.is_opt_out, verdict.detail) == (Outcome.FAILED, is_opt_out, description)


def test_the_played_server_refuses_what_telegram_refuses(telegram: Telegram, account: Account) -> None:
    telegram.blocked, telegram.deactivated, telegram.knows = {42}, {43}, {1, 42, 43}
    verdicts = [send(telegram, account, text(to=to)) for to in ("42", "43", "44")]
    assert [verdict.is_opt_out for verdict in verdicts] == [True, True, False]
    assert send(telegram, account, text("x" * 4097, to="1")).detail == "Bad Request: message is too long"
    assert telegram.bot.sent == []


def test_the_token_is_in_no_representation(account: Account) -> None:
    request = KIND.sending(account, text(), None)
    assert TOKEN not in repr(request) + repr(account)
    assert TOKEN in request.address


# Files


def test_a_file_is_located_and_fetched(telegram: Telegram, account: Account) -> None:
    file_id = telegram.keep_file(b"\0picture", "my photo?.jpg")
    located = KIND.located(account, ask(telegram, KIND.locating(account, Media(file_id)))[0])
    assert isinstance(located, Request)
    assert ask(telegram, located)[0].body == b"\0picture"


@pytest.mark.parametrize(
    ("trouble", "outcome"),
    [
        (Trouble.CUT_AFTER, Outcome.LATER),
        (refused(400, "Bad Request: file is too big"), Outcome.FAILED),
        (Reply(200, {"ok": True, "result": {"file_id": "f"}}), Outcome.FAILED),
        (refused(401, "Unauthorized"), Outcome.UNAUTHORIZED),
        (throttled(3), Outcome.LATER),
    ],
)
def test_a_file_that_is_not_there_has_a_verdict(
    telegram: Telegram, account: Account, trouble: Reply | Trouble, outcome: Outcome
) -> None:
    telegram.happens(trouble, path="/getFile")
    located = KIND.located(account, ask(telegram, KIND.locating(account, Media("f")))[0])
    assert isinstance(located, Verdict)
    assert located.outcome is outcome


def test_updates_reach_the_webhook_with_its_secret(telegram: Telegram, account: Account) -> None:
    hook = replace(account, hook_address=f"{telegram.url}/hook")
    ask(telegram, *KIND.connecting(hook))
    telegram.deliver(Person().writes("Hello"))
    call = telegram.calls[-1]
    assert KIND.is_genuine(hook, {name.lower(): value for name, value in call.headers.items()}, call.body)
    assert [arrival.text for arrival in KIND.arrivals(hook, call.body)] == ["Hello"]


@pytest.mark.parametrize(
    ("content_type", "description", "is_sent_again"),
    [
        ("image/png", "Bad Request: PHOTO_INVALID_DIMENSIONS", True),
        ("image/jpeg", "Bad Request: IMAGE_PROCESS_FAILED", True),
        ("video/mp4", "Bad Request: VIDEO_CONTENT_TYPE_INVALID", True),
        ("image/png", "Bad Request: chat not found", False),
        ("application/pdf", "Bad Request: PHOTO_INVALID_DIMENSIONS", False),
    ],
)
def test_what_cannot_be_shown_goes_again_as_a_document(
    content_type: str, description: str, *, is_sent_again: bool
) -> None:
    message = Outgoing("msg_1", "42", "Yours", file=File("a", content_type, b"content"))
    answer = answered(400, json.dumps({"ok": False, "error_code": 400, "description": description}), 5)

    again = KIND.instead(message, answer)

    assert (again is not None) is is_sent_again
    assert again is None or (again.text, again.file) == ("Yours", File("a", "application/octet-stream", b"content"))
    assert again is None or KIND.instead(again, answer) is None
