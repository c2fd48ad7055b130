"""Renditions: a message on each kind of channel, with the reason where it would not be sent there."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import count
from app.domain.broadcasts import routes
from app.domain.broadcasts.routes import ChannelPreview
from app.models.contacts import Contact
from tests.broadcasting import begin, outcomes, work
from tests.cast import Api
from tests.talks import make_channel, receive

BUTTONS = [{"id": each, "label": each} for each in "abcd"]
FILE = {"upload_id": "upl_01kaj5bd40e6rr3f5y2kq0w9xz"}


def connected(api: Api, kind: str) -> str:
    """The identifier of a channel of that kind."""
    channel_id = make_channel(api.workspace_id)
    count("UPDATE channels SET kind = %s WHERE id = %s", (kind, channel_id))
    return channel_id


def talk(api: Api, contact_id: str, channel_id: str, **fields: Any) -> None:
    """The contact has written on the channel, whose window is open by default."""
    message = receive(api.workspace_id, contact_id, channel_id)
    hours, peer = fields.get("hours", 1), fields.get("peer", "1")
    count(
        "UPDATE conversations SET peer = %s, window_ends_at = now() + %s * interval '1 hour' WHERE id = %s",
        (peer, hours, message.conversation_id),
    )


def of(contact_id: str, channel_id: str | None = None, **message: Any) -> dict[str, ChannelPreview]:
    """The message by the kinds of channels."""
    found = routes.renditions(message, message.get("text"), Contact.get_by_id(contact_id), channel_id)
    return {each.kind.name: each for each in found}


def test_there_is_one_for_each_kind_that_is_connected_the_chosen_one_first(api: Api) -> None:
    for kind in ("telegram", "whatsapp", "telegram"):
        connected(api, kind)
    count("UPDATE channels SET state = 'disconnected' WHERE id = %s", (connected(api, "web_chat"),))
    ada = api.contact(phone="+49305000001")["id"]

    assert list(of(ada, text="Hello")) == ["whatsapp", "telegram"]
    assert list(of(ada, connected(api, "web_chat"), text="Hello")) == ["web_chat"]
    assert of(ada, "chn_01kaj5bd40e6rr3f5y2kq0w9xz", text="Hello") == {}


def test_it_names_the_channel_of_the_latest_conversation_of_its_kind(api: Api) -> None:
    first, second, other = (connected(api, kind) for kind in ("telegram", "telegram", "whatsapp"))
    ada = api.contact(phone="+49305000001")["id"]
    for channel_id in (second, first, other):
        talk(api, ada, channel_id)

    found = of(ada, text="Hello")

    assert found["telegram"].channel.id == first
    assert {name: each.is_chosen for name, each in found.items()} == {"telegram": False, "whatsapp": True}
    assert {each.fault for each in found.values()} == {None}


@pytest.mark.parametrize(
    ("kind", "message", "said"),
    [
        ("whatsapp", {"text": "x", "buttons": BUTTONS, "attachments": [FILE]}, "at most 3 buttons"),
        ("telegram", {"text": "x", "buttons": BUTTONS, "attachments": [FILE]}, None),
        ("telegram", {"text": "x", "attachments": [FILE, FILE]}, "at most one file"),
        ("web_chat", {"text": "x", "attachments": [FILE, FILE]}, None),
        ("telegram", {"text": "x" * 1_025, "attachments": [FILE]}, "at most 1,024 characters"),
        ("whatsapp", {"text": "x" * 1_025, "buttons": BUTTONS[:3]}, "at most 1,024 characters"),
        ("whatsapp", {"text": "x" * 1_025, "buttons": BUTTONS}, None),
        ("telegram", {"template": {"name": "sale"}}, "has no templates"),
        ("whatsapp", {"template": {"name": "sale"}}, None),
    ],
)
def test_what_the_kind_does_not_take_is_a_fault(api: Api, kind: str, message: dict[str, Any], said: str | None) -> None:
    channel_id = connected(api, kind)
    ada = api.contact(email="ada@example.com")["id"]
    talk(api, ada, channel_id)

    fault = of(ada, **message)[kind].fault

    assert fault is None if said is None else said in str(fault)


def test_a_closed_window_takes_a_template_alone(api: Api) -> None:
    channel_id = connected(api, "whatsapp")
    ada = api.contact(phone="+49305000001")["id"]
    talk(api, ada, channel_id, hours=-1)

    text, template = of(ada, text="x")["whatsapp"], of(ada, text="x", template={"name": "sale"})["whatsapp"]

    assert (text.fault is None, text.is_template, text.open_until) == (False, False, None)
    assert (template.fault, template.is_template) == (None, True)


def test_it_says_what_the_broadcast_then_does(api: Api) -> None:
    whatsapp, telegram = connected(api, "whatsapp"), connected(api, "telegram")
    free, closed, lost, out, new = (api.contact(phone=f"+4930500000{number}")["id"] for number in range(5))
    talk(api, free, telegram, peer="1")
    talk(api, closed, telegram, peer="2")
    talk(api, closed, whatsapp, peer="2", hours=-1)
    talk(api, lost, whatsapp, peer="3")
    talk(api, lost, telegram, peer=None)
    talk(api, out, telegram, peer="4")
    api.done(api.patch(f"contacts/{out}", {"opted_out": True}))

    told = {
        contact_id: [each.fault is None for each in of(contact_id, text="Hello").values() if each.is_chosen]
        for contact_id in (free, closed, lost, out, new)
    }
    work(broadcast_id := begin(api.workspace_id, message={"text": "Hello"}))

    assert told == {free: [True], closed: [False], lost: [False], out: [False], new: [False]}
    assert outcomes(broadcast_id) == {
        free: "sent",
        closed: "window_closed",
        lost: "no_channel",
        out: "opted_out",
        new: "window_closed",
    }
