"""Media: files for messages, claimed once, fetched for a message, and forgotten in time."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app import metrics, process_registry
from app.channels.base import File
from app.channels.inbound import Media
from app.config import settings
from app.database import rows
from app.domain.channels import media
from app.domain.work.units import Unit
from app.errors import Invalid, NotFound, TooLarge, Unavailable
from app.lib import ids
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.uploads import Upload
from tests.cast import Api, all_of, one
from tests.talks import locked, make_channel, receive, undo

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(external_id="c-1")["id"])


@pytest.fixture
def channel(api: Api) -> Channel:
    return Channel.get_by_id(make_channel(api.workspace_id))


def claim(api: Api, contact_id: str, *upload_ids: str, **options: Any) -> list[dict[str, Any]]:
    def task(unit: Unit, _: Contact) -> list[dict[str, Any]]:
        return media.claim_uploads(unit, api.workspace_id, upload_ids, ids.new("msg"), **options)

    return locked(api.workspace_id, contact_id, task)


def expect(api: Api, contact_id: str, channel: Channel, *refs: str) -> tuple[str, list[dict[str, Any]]]:
    """A message with files that are still to be fetched; its identifier and its attachments."""
    message = receive(api.workspace_id, contact_id, channel.id)
    wanted = [Media(ref, "image/jpeg", "../../me.jpg", 12) for ref in refs]
    attachments = locked(
        api.workspace_id, contact_id, lambda unit, _: media.expect(unit, channel, wanted, message_id=message.id)
    )
    rows(
        "UPDATE messages SET attachments = %s::text::json WHERE id = %s",
        (str(attachments).replace("'", '"').replace("None", "null"), message.id),
    )
    return message.id, attachments


def kept() -> list[Path]:
    return [path for path in settings().media_dir.rglob("*") if path.is_file() and path.name != media.MARK]


@pytest.fixture(autouse=True)
def media_dir(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MEDIA_DIR", str(tmp_path / "media"))
    settings.cache_clear()
    yield tmp_path / "media"
    monkeypatch.undo()
    settings.cache_clear()


# Uploads


def test_an_upload_is_kept_for_a_day_with_the_type_of_its_content(api: Api) -> None:
    upload = media.store(api.workspace_id, "C:\\photos\\me.jpg", PNG)

    assert (upload.name, upload.content_type, upload.bytes) == ("me.jpg", "image/png", len(PNG))
    assert media.load(upload.id) == File("me.jpg", "image/png", PNG)
    assert one("SELECT expires_at - created_at = interval '24 hours' FROM uploads")


def test_a_file_without_a_name_gets_one_when_it_is_sent(api: Api) -> None:
    upload = media.store(api.workspace_id, "../..", [PNG[:3], PNG[3:]])

    assert media.load(upload.id) == File(f"image-{upload.id[-6:]}", "image/png", PNG)


def test_nothing_stays_of_a_file_that_is_too_large_or_empty(api: Api) -> None:
    part = bytes(1024**2)
    with pytest.raises(TooLarge, match="16 MiB"):
        media.store(api.workspace_id, None, (part for _ in range(17)))
    with pytest.raises(Invalid, match="empty"):
        media.store(api.workspace_id, None, b"")

    assert (kept(), one("SELECT count(*) FROM uploads")) == ([], 0)


def test_a_file_of_sixteen_mebibytes_fits(api: Api) -> None:
    assert media.store(api.workspace_id, None, (bytes(1024**2) for _ in range(16))).bytes == media.MOST_BYTES


def test_a_full_disk_is_reported(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(Unavailable):
        media.store(api.workspace_id, None, PNG)
    assert (kept(), one("SELECT count(*) FROM uploads")) == ([], 0)


def test_a_process_that_keeps_a_file_says_where(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_registry, "_facts", {})

    media.store(api.workspace_id, "me.jpg", PNG)

    assert process_registry._facts == {"files": media.mark()}


def test_an_upload_that_no_directory_takes_is_refused_and_counted(api: Api, nowhere_for_files: Path) -> None:
    before = metrics.DISK_REFUSALS.labels("media")._value.get()

    answer = api.post("uploads?name=a.png", data=PNG)

    assert answer.status_code == 503
    assert metrics.DISK_REFUSALS.labels("media")._value.get() == before + 1


# Claims


def test_a_message_takes_an_upload_once(api: Api, contact_id: str) -> None:
    upload = media.store(api.workspace_id, "a.png", PNG)

    [attachment] = claim(api, contact_id, upload.id)

    assert attachment == {"id": upload.id, "name": "a.png", "content_type": "image/png", "bytes": len(PNG)}
    with pytest.raises(Invalid) as refused:
        claim(api, contact_id, upload.id)
    assert refused.value.faults[0].pointer == "/attachments/0/upload_id"


def test_a_claim_that_fails_gives_the_file_back(api: Api, contact_id: str) -> None:
    upload = media.store(api.workspace_id, "a.png", PNG)

    def task(unit: Unit, _: Contact) -> None:
        undo(unit, lambda: media.claim_uploads(unit, api.workspace_id, [upload.id], ids.new("msg")))

    locked(api.workspace_id, contact_id, task)

    assert len(claim(api, contact_id, upload.id)) == 1


def test_the_same_upload_is_not_attached_twice_to_one_message(api: Api, contact_id: str) -> None:
    upload = media.store(api.workspace_id, "a.png", PNG)

    with pytest.raises(Invalid):
        claim(api, contact_id, upload.id, upload.id)


@pytest.mark.parametrize("other", ["upl_nothing", "upl_01m84bzv36eq1aznhp6e1nvg8s", "msg_01m84bzv36eq1aznhp6e1nvg8s"])
def test_what_is_no_upload_cannot_be_claimed(api: Api, contact_id: str, other: str) -> None:
    with pytest.raises(Invalid):
        claim(api, contact_id, other)


def test_an_expired_upload_cannot_be_claimed(api: Api, contact_id: str) -> None:
    upload = media.store(api.workspace_id, "a.png", PNG)
    rows("UPDATE uploads SET expires_at = now() - interval '1 second'")

    with pytest.raises(Invalid):
        claim(api, contact_id, upload.id)


def test_the_files_of_others_cannot_be_claimed(api: Api, others: Api, contact_id: str) -> None:
    theirs = media.store(others.workspace_id, "a.png", PNG)
    visitors = media.store(api.workspace_id, "a.png", PNG, visitor_id="vis_1")

    for options in ({}, {"visitor_id": "vis_2"}):
        with pytest.raises(Invalid):
            claim(api, contact_id, visitors.id, **options)
    with pytest.raises(Invalid):
        claim(api, contact_id, theirs.id)
    assert len(claim(api, contact_id, visitors.id, visitor_id="vis_1")) == 1


# Files of providers


def test_an_expected_file_is_mail_of_its_channel_until_it_is_here(api: Api, contact_id: str, channel: Channel) -> None:
    message_id, attachments = expect(api, contact_id, channel, "file-1", "file-2")
    first, second = (each["id"] for each in attachments)

    assert [each["bytes"] for each in attachments] == [None, None]
    assert all_of("SELECT source->>'ref' FROM uploads WHERE channel_id = %s ORDER BY id", channel.id) == [
        "file-1",
        "file-2",
    ]
    media.keep(second, PNG)

    assert all_of("SELECT id FROM uploads WHERE due_at IS NOT NULL") == [first]
    assert one("SELECT attachments FROM messages WHERE id = %s", message_id) == [
        {"id": first, "name": "me.jpg", "content_type": "image/jpeg", "bytes": None},
        {"id": second, "name": "me.jpg", "content_type": "image/png", "bytes": len(PNG)},
    ]
    with pytest.raises(NotFound):
        media.load(first)


def test_a_file_that_is_kept_twice_is_kept_once(api: Api, contact_id: str, channel: Channel) -> None:
    _, [attachment] = expect(api, contact_id, channel, "file-1")

    media.keep(attachment["id"], PNG)
    media.keep(attachment["id"], [PNG])

    assert len(kept()) == 1
    assert media.load(attachment["id"]).content == PNG


def test_a_file_whose_row_was_erased_is_not_kept(api: Api) -> None:
    media.keep(ids.new("upl"), PNG)

    assert kept() == []


# Addresses


def test_a_file_is_found_at_its_address_alone(api: Api) -> None:
    upload = media.store(api.workspace_id, "a.png", PNG)
    _, _, upload_id, proof = media.address_of(upload.id).removeprefix("https://").split("/")

    assert media.find(upload_id, proof) == upload
    for guess in ("", proof[:-1], f"{proof}0", "ü" * 32):
        with pytest.raises(NotFound):
            media.find(upload_id, guess)


def test_an_address_outlives_a_new_key(api: Api, keys: Any) -> None:
    upload = media.store(api.workspace_id, "a.png", PNG)
    keys("the first key of all")
    proof = media.address_of(upload.id).rpartition("/")[2]

    keys("another newer key", "the first key of all")

    assert media.find(upload.id, proof) == upload
    assert media.address_of(upload.id).rpartition("/")[2] != proof


def test_an_attachment_has_an_address_once_it_is_here(api: Api, contact_id: str) -> None:
    upload = media.store(api.workspace_id, "a.png", PNG)
    attachments = claim(api, contact_id, upload.id)

    assert media.shown(attachments) == [{**attachments[0], "address": media.address_of(upload.id)}]
    assert media.shown([{**attachments[0], "bytes": None}])[0]["address"] is None


# Deletion


def test_an_upload_that_nobody_takes_is_deleted(api: Api, contact_id: str) -> None:
    taken, free, late = (media.store(api.workspace_id, "a.png", PNG) for _ in range(3))
    claim(api, contact_id, taken.id)
    rows("UPDATE uploads SET expires_at = now() - interval '1 second' WHERE id IN (%s, %s)", (free.id, taken.id))
    rows("UPDATE uploads SET expires_at = NULL WHERE id = %s", (taken.id,))

    assert (media.delete_expired(), media.delete_expired()) == (1, 0)

    assert {path.name for path in kept()} == {taken.id, late.id}
    assert {row.id for row in Upload.select()} == {taken.id, late.id}


def test_files_are_deleted_with_their_rows(api: Api) -> None:
    first, second = (media.store(api.workspace_id, "a.png", PNG) for _ in range(2))

    media.delete_files([first.id])
    media.delete_files([first.id])

    assert [path.name for path in kept()] == [second.id]
    assert [row.id for row in Upload.select()] == [second.id]
