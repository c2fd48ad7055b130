"""Webhooks that somebody has recorded and sends again, and those that say what no provider documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from app.channels.inbound import BadPayload
from app.channels.kinds import CHANNEL_KINDS
from app.database import rows
from app.domain.channels import arrivals, channels
from app.domain.retention import delete_old
from app.lib import clock
from app.models.channels import Channel
from app.models.contacts import Contact
from tests.app.channels.conformance import places
from tests.arriving import process
from tests.cast import Api, all_of, one
from tests.providers import telegram, whatsapp
from tests.providers.telegram_people import Person
from tests.talks import make_channel

SECRETS = {
    "telegram": CHANNEL_KINDS["telegram"].fresh_credentials({"bot_token": telegram.TOKEN}),
    "whatsapp": whatsapp.CREDENTIALS,
}


def connected(workspace_id: str, kind: str) -> Channel:
    channel_id = make_channel(workspace_id)
    rows(
        "UPDATE channels SET kind = %s, settings = %s, credentials = %s WHERE id = %s",
        (kind, json.dumps({"phone_number_id": whatsapp.NUMBER}), channels.sealed(SECRETS[kind]), channel_id),
    )
    return Channel.get_by_id(channel_id)


def headers(kind: str, body: bytes) -> Mapping[str, str]:
    if kind == "telegram":
        return {"x-telegram-bot-api-secret-token": SECRETS[kind]["hook_secret"]}
    return {name.lower(): value for name, value in whatsapp.signed(body).items()}


def take(channel: Channel, body: bytes) -> int:
    new = arrivals.take(channel, headers(channel.kind, body), body, trace_id="trace-1")
    while process():
        pass
    return new


def forget_keys(days: int = 8) -> None:
    rows("UPDATE arrivals SET created_at = created_at - %s * interval '1 day' - interval '1 minute'", (days,))
    assert delete_old("old_arrivals") > 0


def dumped(update: Mapping[str, object]) -> bytes:
    return json.dumps(update).encode()


def of_whatsapp(**value: object) -> bytes:
    return whatsapp.webhook(contacts=[whatsapp.person()], **value)


WISH = {"wa_id": whatsapp.PHONE, "timestamp": str(int(clock.now().timestamp())), "value": "stop"}
MOVE = {"type": "user_changed_number", "wa_id": "33612345678", "body": "Ada changed"}
ADA = Person()
HI = ADA.writes("Hi")
RECORDED = {
    "telegram message": dumped(HI),
    "telegram edit": dumped(ADA.edits(HI, "Hello")),
    "telegram block": dumped(ADA.blocks()),
    "whatsapp message": of_whatsapp(messages=[whatsapp.message("wamid.1", text="Hi")]),
    "whatsapp echo": of_whatsapp(message_echoes=[whatsapp.echo("wamid.2", text="Hello")]),
    "whatsapp receipt": of_whatsapp(statuses=[whatsapp.status("wamid.2", "read")]),
    "whatsapp block": of_whatsapp(user_preferences=[WISH]),
    "whatsapp move": of_whatsapp(messages=[whatsapp.message("wamid.3", system=MOVE)]),
}


@pytest.mark.parametrize("what", RECORDED)
def test_a_webhook_counts_once_also_when_its_key_is_forgotten(api: Api, what: str) -> None:
    channel = connected(api.workspace_id, what.partition(" ")[0])
    assert take(channel, RECORDED[what]) == 1
    rows("UPDATE arrivals SET due_at = NULL, next_attempt_at = NULL")  # the receipt has found no message

    with clock.moved_by(days=7):
        assert take(channel, RECORDED[what]) == 0
    forget_keys()
    with clock.moved_by(days=8, minutes=1):
        assert take(channel, RECORDED[what]) == 0


@pytest.mark.parametrize("what", ["telegram message", "whatsapp message"])
def test_who_was_erased_does_not_come_back_by_an_old_webhook(api: Api, what: str) -> None:
    channel = connected(api.workspace_id, what.partition(" ")[0])
    take(channel, RECORDED[what])
    api.done(api.delete(f"contacts/{Contact.get().id}"))
    forget_keys()

    with clock.moved_by(days=30):
        take(channel, RECORDED[what])

    assert one("SELECT count(*) FROM contacts") == 0


def test_who_wants_messages_again_is_not_opted_out_by_an_old_webhook(api: Api) -> None:
    channel = connected(api.workspace_id, "telegram")
    for recorded in ("telegram message", "telegram block"):
        take(channel, RECORDED[recorded])
    take(channel, dumped(ADA.writes("/start")))
    api.done(api.patch(f"contacts/{Contact.get().id}", {"opted_out": False}))
    forget_keys()

    with clock.moved_by(days=30):
        take(channel, RECORDED["telegram block"])

    assert Contact.get().opted_out is False


def test_what_the_provider_repeats_for_a_week_arrives(api: Api) -> None:
    for kind in SECRETS:
        channel = connected(api.workspace_id, kind)
        with clock.moved_by(days=7):
            assert take(channel, RECORDED[f"{kind} message"]) == 1


# Numbers that no calendar and no column has, and texts of every kind.
STRANGE = [
    *(None, True, -1, 1e308, 10**11, 10**18, 10**40, "9" * 18, "9" * 5_000, "-62135596800", "253402300799"),
    *("", " ", "a\0b", "\u202e" * 300, "\ufffe", "x" * 70_000, [], {}, [None], {"id": [[]]}),
]


@pytest.mark.parametrize("what", RECORDED)
def test_whatever_a_provider_says_is_refused_or_processed(api: Api, what: str) -> None:
    channel = connected(api.workspace_id, what.partition(" ")[0])
    for number, document in enumerate(altered(RECORDED[what])):
        if "update_id" in document:
            document["update_id"] = number  # or all would be the same
        body = json.dumps(document).encode()
        with suppress(BadPayload):
            arrivals.take(channel, headers(channel.kind, body), body, trace_id="trace-1")

    while process():
        pass

    assert one("SELECT count(*) FROM arrivals") > 5
    assert all_of("SELECT payload::text FROM arrivals WHERE errors > 0 OR problem IS NOT NULL") == []


def altered(body: bytes) -> Iterator[dict[str, Any]]:
    """The document, with each of its members and items as something strange."""
    for place, _ in enumerate(places(json.loads(body))):
        for value in STRANGE:
            document = json.loads(body)
            holder, name = places(document)[place]
            holder[name] = value
            yield document
