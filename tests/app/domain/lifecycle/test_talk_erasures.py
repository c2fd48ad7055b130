"""What a deleted contact leaves in channels: nothing that goes out, no file, no way back in."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import database
from app.channels.inbound import Media
from app.config import settings
from app.database import rows
from app.domain import writes
from app.domain.channels import arrivals, media
from app.domain.lifecycle import exports
from app.lib import json
from app.models.channels import Channel
from app.models.contacts import Contact
from tests.arriving import arrive, make_post, process, receipt, received
from tests.cast import Api, all_of, elsewhere, one

PDF = b"%PDF-1.7 Ada's bill"


@pytest.fixture
def channel(api: Api) -> Channel:
    return make_post(api.workspace_id)


def files() -> list[Path]:
    return [path for path in settings().media_dir.rglob("*") if path.is_file() and path.name != media.MARK]


def write_as_ada(channel: Channel, key: str = "1", *refs: str) -> str:
    """Ada's message arrives, with files; returns her contact."""
    arrive(
        channel,
        received("Hello", key, at=database.now(), media=[Media(ref, "application/pdf", "bill.pdf") for ref in refs]),
    )
    return str(one("SELECT contact_id FROM identities"))


def fetch_all() -> None:
    for upload_id in all_of("SELECT id FROM uploads WHERE due_at IS NOT NULL"):
        media.keep(upload_id, PDF)


def answer(api: Api, *texts: str) -> None:
    conversation_id = one("SELECT id FROM conversations")
    for text in texts:
        api.done(api.post(f"conversations/{conversation_id}/messages", {"text": text}))


def test_the_files_of_a_deleted_contact_are_deleted(api: Api, channel: Channel) -> None:
    before = files()
    contact_id = write_as_ada(channel, "1", "one", "two")
    fetch_all()
    write_as_ada(channel, "2", "three")
    assert len(files()) == len(before) + 2

    api.done(api.delete(f"contacts/{contact_id}"))

    assert files() == before
    assert one("SELECT count(*) FROM uploads") == 0


def test_a_file_that_is_fetched_after_the_deletion_is_not_kept(api: Api, channel: Channel) -> None:
    before = files()
    contact_id = write_as_ada(channel, "1", "one")
    [upload_id] = all_of("SELECT id FROM uploads")
    api.done(api.delete(f"contacts/{contact_id}"))

    media.keep(upload_id, PDF)

    assert files() == before


def test_an_erasure_does_not_wait_for_a_file_that_is_being_kept(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel, "1", "one")
    with elsewhere(lambda: rows("SELECT 1 FROM uploads FOR UPDATE")):
        deleting = api.delete(f"contacts/{contact_id}")
        for _ in range(3):
            writes.work(api.workspace_id)
        assert api.job(deleting)["status"] == "running"
    api.apply()

    assert api.job(deleting)["status"] == "succeeded"
    assert one("SELECT count(*) FROM uploads") == 0


def test_nothing_that_waits_goes_out_to_a_deleted_contact(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel)
    answer(api, "One", "Two", "Three")

    api.done(api.delete(f"contacts/{contact_id}"))

    assert rows("SELECT status, failure->>'code', due_at, is_behind FROM messages WHERE direction = 'out'") == (
        [("failed", "erased", None, False)] * 3
    )


def test_who_writes_again_is_a_new_contact(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel)
    api.done(api.delete(f"contacts/{contact_id}"))

    assert write_as_ada(channel, "2") != contact_id
    assert one("SELECT count(*) FROM conversations WHERE status = 'open'") == 1


def test_a_webhook_that_is_repeated_after_the_deletion_brings_nothing_back(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel)
    api.done(api.delete(f"contacts/{contact_id}"))

    arrive(channel, received("Hello", "1"))

    assert one("SELECT count(*) FROM contacts") == 0


def test_what_came_before_the_deletion_and_is_processed_after_it_brings_nobody_back(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel)
    arrivals.store(channel, [received("My number is 42", "2", name="Ada"), receipt("read", "unknown-yet")])

    api.done(api.delete(f"contacts/{contact_id}"))
    while process():
        pass

    assert [one(f"SELECT count(*) FROM {table}") for table in ("contacts", "identities")] == [0, 0]
    assert rows("SELECT DISTINCT sender_key, payload::text, due_at FROM arrivals") == [(channel.id, None, None)]


def test_what_comes_after_the_deletion_is_somebody_new(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel)
    arrivals.store(channel, [received("Before", "2")])
    api.done(api.delete(f"contacts/{contact_id}"))

    arrive(channel, received("After", "3"))

    assert all_of("SELECT text FROM messages WHERE text IS NOT NULL") == ["After"]
    assert one("SELECT count(*) FROM contacts") == 1


def test_a_deletion_comes_after_what_a_worker_is_about_to_process(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel)
    arrivals.store(channel, [received("Before", "2")])
    with elsewhere(lambda: rows("SELECT 1 FROM arrivals WHERE due_at IS NOT NULL FOR NO KEY UPDATE")):
        deleting = api.delete(f"contacts/{contact_id}")
        for _ in range(3):
            writes.work(api.workspace_id)
        assert api.job(deleting)["status"] in ("queued", "running")
        assert one("SELECT count(*) FROM contacts") == 1
    api.apply()

    assert api.job(deleting)["status"] == "succeeded"
    assert not process()
    assert one("SELECT count(*) FROM contacts") == 0


def test_what_was_processed_does_not_say_whose_it_was(channel: Channel) -> None:
    write_as_ada(channel)

    assert rows("SELECT sender_key, payload FROM arrivals") == [(channel.id, None)]


def test_a_receipt_that_waits_for_its_message_is_emptied(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel)
    arrive(channel, receipt("delivered", "nobody-knows"))
    assert all_of("SELECT sender_key FROM arrivals WHERE payload IS NOT NULL") == [
        arrivals.sender_key(channel.id, "ada")
    ]

    api.done(api.delete(f"contacts/{contact_id}"))

    assert rows("SELECT DISTINCT sender_key, payload::text, next_attempt_at FROM arrivals") == [
        (channel.id, None, None)
    ]


def test_another_contact_keeps_everything(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel)
    arrive(channel, received("Hi", "b1", sender="bob", media=[Media("b", "application/pdf", "bill.pdf")]))
    fetch_all()

    api.done(api.delete(f"contacts/{contact_id}"))

    assert all_of("SELECT external_id FROM identities") == ["bob"]
    assert all_of("SELECT peer FROM conversations WHERE peer IS NOT NULL") == ["chat-bob"]
    [attachments] = all_of("SELECT attachments FROM messages WHERE text = 'Hi'")
    assert media.load(attachments[0]["id"]).content == PDF


def test_an_export_has_identities_and_the_addresses_of_files(api: Api, channel: Channel) -> None:
    contact_id = write_as_ada(channel, "1", "one")
    fetch_all()

    document = json.loads(b"".join(exports.export(Contact.get_by_id(contact_id))))["data"]

    assert document["contact"]["identities"] == [{"channel_kind": "post", "external_id": "ada"}]
    [attachment] = document["messages"][0]["attachments"]
    assert attachment["address"] == media.address_of(attachment["id"])
