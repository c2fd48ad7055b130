"""python-telegram-bot asks, reads and judges as we do; it also finds that the played Bot API is like the real one."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import telegram as peer
from telegram import error as errors
from telegram.request import HTTPXRequest

from app.channels.base import Account, ChannelKind, File, Outcome, Outgoing, Request
from app.channels.inbound import Media
from app.channels.kinds import CHANNEL_KINDS
from app.outbound import Answer
from tests.app.channels import asking
from tests.providers.base import Call, Reply
from tests.providers.telegram import TOKEN, Telegram, parameters_of, refused, throttled
from tests.providers.telegram_people import Person

KIND: ChannelKind = CHANNEL_KINDS["telegram"]
CREDENTIALS = {"bot_token": TOKEN, "hook_secret": "a-secret"}
HOOK = "https://bellhop.test/hooks/telegram/chn_1"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 64

BUTTONS = ({"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"})
KEYBOARD = peer.InlineKeyboardMarkup(
    [[peer.InlineKeyboardButton(each["label"], callback_data=each["id"])] for each in BUTTONS]
)

Ask = Callable[[peer.Bot], Awaitable[Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Telegram]:
    provider = Telegram(tmp_path_factory.mktemp("telegram"))
    provider.start()
    yield provider
    provider.stop()


@pytest.fixture
def account(server: Telegram) -> Account:
    server.calls.clear()
    return Account("chn_1", {}, CREDENTIALS, server.url, HOOK)


def ask_as_peer(server: Telegram, ask: Ask) -> Any:
    """What the peer's bot makes of the server's answer."""
    verify = ssl.create_default_context(cafile=str(server.certificates.ca_file))

    async def story() -> Any:
        request = HTTPXRequest(httpx_kwargs={"verify": verify}, read_timeout=5)
        bot = peer.Bot(TOKEN, f"{server.url}/bot", f"{server.url}/file/bot", request=request)
        async with request:
            return await ask(bot)

    return asyncio.run(story())


def the_answer(server: Telegram, request: Request) -> Answer:
    [answer] = asking.ask(server, request)
    return answer


def meaning_of(call: Call) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Its method, parameters and files, without the differences between the ways of writing them."""
    parameters, files = parameters_of(call)
    plain = {name: value if isinstance(value, str) else json.dumps(value) for name, value in parameters.items()}
    for name in {"allowed_updates", "reply_markup"} & plain.keys():
        plain[name] = json.loads(plain[name])
    return call.path.rpartition("/")[2], plain, files


@pytest.mark.parametrize(
    ("request_of", "ask"),
    [
        (lambda account: KIND.connecting(account)[0], lambda bot: bot.get_me()),
        (
            lambda account: KIND.connecting(account)[1],
            lambda bot: bot.set_webhook(
                HOOK,
                allowed_updates=["message", "edited_message", "callback_query", "my_chat_member"],
                secret_token="a-secret",
            ),
        ),
        (lambda account: KIND.disconnecting(account)[0], lambda bot: bot.delete_webhook()),
        (
            lambda account: KIND.sending(account, Outgoing("msg_1", "42", "*Größe* 👕"), None),
            lambda bot: bot.send_message(42, "*Größe* 👕"),
        ),
        (
            lambda account: KIND.sending(account, Outgoing("msg_1", "42", "Sure?", buttons=BUTTONS), None),
            lambda bot: bot.send_message(42, "Sure?", reply_markup=KEYBOARD),
        ),
        (
            lambda account: KIND.reading(account, "42", "press:17"),
            lambda bot: bot.answer_callback_query("17"),
        ),
        (
            lambda account: KIND.sending(account, Outgoing("msg_1", "42", "Yours", file=a_file("image/png")), None),
            lambda bot: bot.send_photo(42, PNG, caption="Yours", filename="größe.png"),
        ),
        (
            lambda account: KIND.sending(
                account, Outgoing("msg_1", "42", None, file=a_file("application/pdf", "größe.pdf")), None
            ),
            lambda bot: bot.send_document(42, PNG, filename="größe.pdf"),
        ),
    ],
)
def test_the_peer_asks_the_same(server: Telegram, account: Account, request_of: Any, ask: Ask) -> None:
    assert the_answer(server, request_of(account)).ok
    assert ask_as_peer(server, ask)
    ours, theirs = server.calls
    assert meaning_of(ours) == meaning_of(theirs)
    assert ours.path == theirs.path


def a_file(content_type: str, name: str = "größe.png") -> File:
    return File(name, content_type, PNG)


def test_the_peer_fetches_a_file_from_the_same_place(server: Telegram, account: Account) -> None:
    file_id = server.keep_file(PNG, "photo.png")

    async def fetch(bot: peer.Bot) -> bytes:
        return bytes(await (await bot.get_file(file_id)).download_as_bytearray())

    assert ask_as_peer(server, fetch) == PNG
    located = KIND.located(account, the_answer(server, KIND.locating(account, Media(file_id))))
    assert isinstance(located, Request)
    assert the_answer(server, located).body == PNG
    locating, fetching, our_locating, our_fetching = server.calls
    assert meaning_of(locating) == meaning_of(our_locating)
    assert fetching.path == our_fetching.path


@pytest.mark.parametrize(
    ("reply", "error", "outcome"),
    [
        (throttled(7), errors.RetryAfter, Outcome.LATER),
        (refused(403, "Forbidden: bot was blocked by the user"), errors.Forbidden, Outcome.FAILED),
        (refused(401, "Unauthorized"), errors.InvalidToken, Outcome.UNAUTHORIZED),
        (refused(404, "Not Found"), errors.InvalidToken, Outcome.UNAUTHORIZED),
        (refused(400, "Bad Request: chat not found"), errors.BadRequest, Outcome.FAILED),
        (Reply(502, b"<html>"), errors.NetworkError, Outcome.UNKNOWN),
    ],
)
def test_the_peer_judges_refusals_alike(
    server: Telegram, account: Account, reply: Reply, error: type[Exception], outcome: Outcome
) -> None:
    server.happens(reply, reply)
    outgoing = Outgoing("msg_1", "42", "Hello")
    assert KIND.sent(outgoing, the_answer(server, KIND.sending(account, outgoing, None))).outcome is outcome
    with pytest.raises(errors.TelegramError) as raised:
        ask_as_peer(server, lambda bot: bot.send_message(42, "Hello"))
    assert type(raised.value) is error


def test_the_peer_reads_the_same_identifier_of_a_message(server: Telegram, account: Account) -> None:
    outgoing = Outgoing("msg_1", "42", "Hello")
    answer = the_answer(server, KIND.sending(account, outgoing, None))
    message = peer.Message.de_json(json.loads(answer.body)["result"], None)
    assert KIND.sent(outgoing, answer).provider_id == f"{message.chat.id}:{message.message_id}"


@pytest.mark.parametrize(
    "members",
    [
        {"text": "Hello"},
        {
            "photo": [
                {"file_id": "small", "file_unique_id": "s", "width": 90, "height": 67, "file_size": 1_000},
                {"file_id": "large", "file_unique_id": "l", "width": 1280, "height": 960, "file_size": 90_000},
            ],
            "caption": "See?",
        },
        {
            "document": {
                "file_id": "d",
                "file_unique_id": "u",
                "file_name": "a.pdf",
                "mime_type": "application/pdf",
                "file_size": 7,
            }
        },
        {"voice": {"file_id": "v", "file_unique_id": "u", "duration": 3, "mime_type": "audio/ogg", "file_size": 9}},
        {"video": {"file_id": "m", "file_unique_id": "u", "duration": 3, "width": 6, "height": 4}, "caption": "Look"},
    ],
)
def test_the_peer_reads_the_same_of_a_message(account: Account, members: dict[str, Any]) -> None:
    update = Person().sends(**members)
    read: Any = peer.Update.de_json(update, None)
    (ours,) = KIND.arrivals(account, json.dumps(update).encode())
    message, user = read.effective_message, read.effective_user
    assert ours.key == str(read.update_id)
    assert (ours.sender, ours.peer) == (str(user.id), str(read.effective_chat.id))
    assert (ours.name, ours.locale) == (user.full_name, user.language_code)
    assert (ours.provider_id, ours.at) == (f"{message.chat_id}:{message.message_id}", message.date)
    assert ours.text == (message.text or message.caption)
    theirs = message.effective_attachment
    theirs = [theirs[-1]] if isinstance(theirs, tuple) else [theirs] if theirs else []  # sizes of a photo
    assert [(file.ref, file.bytes) for file in ours.media] == [(file.file_id, file.file_size) for file in theirs]


def test_the_peer_reads_the_same_of_edits_and_blocks(account: Account) -> None:
    person = Person()
    first = person.writes("Size M")
    edit, block = person.edits(first, "Size L"), person.blocks()
    (edited,), (blocked,) = (KIND.arrivals(account, json.dumps(each).encode()) for each in (edit, block))
    theirs: Any = peer.Update.de_json(edit, None).edited_message
    assert (edited.text, edited.at) == (theirs.text, theirs.edit_date)
    theirs = peer.Update.de_json(block, None).my_chat_member
    assert blocked.is_blocked == (theirs.new_chat_member.status == peer.ChatMember.BANNED)
    assert (blocked.sender, blocked.at) == (str(theirs.from_user.id), theirs.date)
