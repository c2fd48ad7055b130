"""Whom a provider tells of: by its identifier, or by the number that it attests."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.models.channels import Channel
from tests.app.domain.lifecycle.merging import merge_at_once
from tests.arriving import arrive, echoed, make_post, receipt, received
from tests.cast import Api, all_of, one

NUMBER = "+4915112345678"


@pytest.fixture
def channel(api: Api) -> Channel:
    return make_post(api.workspace_id)


def contact_of(sender: str) -> str:
    return str(one("SELECT contact_id FROM identities WHERE external_id = %s", sender))


def test_somebody_who_shows_the_number_of_a_contact_is_that_contact(api: Api, channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    customer = api.contact(phone=NUMBER, external_id="42")
    arrive(channel, received("It is me", "2", phone=NUMBER))
    api.apply()
    assert contact_of("ada") == customer["id"]
    assert all_of("SELECT DISTINCT contact_id FROM messages") == [customer["id"]]
    assert one("SELECT count(*) FROM conversations") == one("SELECT count(*) FROM contacts") == 1


def test_somebody_with_another_number_than_before_may_be_the_one_who_has_it(api: Api, channel: Channel) -> None:
    arrive(channel, received("Hi", "1", phone="+33612345678"))
    other = api.contact(phone=NUMBER)
    arrive(channel, received("My new number", "2", phone=NUMBER), received("Yes", "3", phone=NUMBER))
    assert one("SELECT count(*) FROM contacts") == 2
    shown = api.show_contact(contact_of("ada"))
    assert shown["suggested_merges"] == [{"contact_id": other["id"], "reason": "same_phone"}]


def test_an_echo_reaches_the_contact_with_the_number(api: Api, channel: Channel) -> None:
    customer = api.contact(phone=NUMBER)
    arrive(channel, echoed(phone=NUMBER))
    assert contact_of("ada") == customer["id"]
    assert one("SELECT count(*) FROM contacts") == 1


def test_a_receipt_counts_while_messages_have_yet_to_follow_their_conversation(api: Api, channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))
    rows("UPDATE messages SET direction = 'out', status = 'sent', provider_id = 'out-1'")
    kept: dict[str, Any] = api.contact(external_id="42")
    merge_at_once(api, kept["id"], contact_of("ada"))
    assert all_of("SELECT contact_id FROM messages") != [kept["id"]]
    arrive(channel, receipt("read"))
    assert all_of("SELECT status FROM messages") == ["read"]
    api.apply()
    assert all_of("SELECT contact_id FROM messages") == [kept["id"]]
