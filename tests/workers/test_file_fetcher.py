"""The fetcher: files of inbound messages are fetched from their provider, with patience and within limits."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app import database, mailbox
from app.channels.inbound import Media
from app.config import settings
from app.database import rows
from app.domain.channels import fetches, media
from app.domain.work.units import Unit
from app.lib import files, ids
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Message
from app.models.uploads import Upload
from tests.arriving import arrive, make_post, received
from tests.bounding import set_bound
from tests.cast import Api, everything_stored, one, rung_on, until
from tests.conftest import Servers
from tests.providers.base import Call, Provider, Reply, Trouble
from tests.talks import locked, make_run
from workers.file_fetcher import FileFetcher

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


class Shelf(Provider):
    """Says where files are, at `/where/<ref>`, and serves them at `/files/<ref>`."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.files: dict[str, bytes] = {}

    def reply(self, call: Call) -> Reply:
        _, what, ref = call.path.split("/")
        if ref not in self.files:
            return Reply(404)
        return Reply(body=f"{self.url}/files/{ref}".encode() if what == "where" else self.files[ref])


@pytest.fixture(scope="module")
def served(servers: Servers) -> Iterator[Shelf]:
    shelf = Shelf(Path(servers.certificates.ca_file).parent)
    shelf.start()
    yield shelf
    shelf.stop()


@pytest.fixture
def shelf(served: Shelf) -> Iterator[Shelf]:
    served.files = {"a": PNG}
    yield served
    served.calls.clear()
    served.always(None, "/where/a")
    served.always(None, "/files/a")


@pytest.fixture
def fetcher(empty: None, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FileFetcher]:
    # It ends before the shelf forgets what it got.
    monkeypatch.setenv("MEDIA_DIR", str(tmp_path))
    monkeypatch.setattr(fetches, "PAUSES_SECONDS", (0.05, 0.05))
    settings.cache_clear()
    made = FileFetcher(fetches)
    yield made
    made.stop()
    database.database.close()
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def channel(api: Api, shelf: Shelf, fetcher: FileFetcher) -> Channel:
    return make_post(api.workspace_id, files=shelf.url)


def send(channel: Channel, *wanted: Media, key: str = "1") -> None:
    arrive(channel, received("Look", key, media=wanted or (Media("a", "image/gif", "cat.gif", 108),)))


def fetched(fetcher: FileFetcher, channel: Channel) -> Any:
    """The file, once it is here or given up."""

    def found() -> Any:
        mailbox.wake_and_ring(fetches.WAITING)
        fetcher.wake(channel.id)
        return Upload.select().where(Upload.due_at.is_null(), Upload.next_attempt_at.is_null()).first()

    return until(found)


def test_a_file_is_rung_for_and_fetched_and_completes_its_message(fetcher: FileFetcher, channel: Channel) -> None:
    send(channel)
    assert rung_on("fetches") == [channel.id]
    assert one("SELECT text FROM messages") == "Look"

    upload = fetched(fetcher, channel)

    assert media.load(upload.id).content == PNG
    [attachment] = Message.get().attachments
    assert attachment == {"id": upload.id, "name": "cat.gif", "content_type": "image/png", "bytes": len(PNG)}


def test_several_files_of_a_message_are_all_fetched(fetcher: FileFetcher, channel: Channel, shelf: Shelf) -> None:
    shelf.files |= {str(number): b"GIF89a" + bytes([number]) for number in range(10)}

    send(channel, *(Media(str(number)) for number in range(10)))
    fetcher.wake(channel.id)

    until(lambda: all(each["bytes"] == 7 for each in Message.get().attachments))


@pytest.mark.parametrize("path", ["/where/a", "/files/a"])
@pytest.mark.parametrize("trouble", [Reply(500), Reply(429), Trouble.CUT_AFTER])
def test_after_a_trouble_it_asks_again_where_the_file_is(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, path: str, trouble: Reply | Trouble
) -> None:
    shelf.happens(trouble, path=path)

    send(channel)

    assert fetched(fetcher, channel).file is not None
    assert len(shelf.called("/where/a", is_taken=False)) == 2


def test_a_file_that_never_comes_is_given_up(fetcher: FileFetcher, channel: Channel, shelf: Shelf) -> None:
    shelf.always(Reply(500), "/files/a")

    send(channel)

    upload = fetched(fetcher, channel)
    assert (upload.file, upload.source, upload.tries) == (None, None, 3)
    assert upload.problem == "The server answered 500 (Internal Server Error)."
    assert Message.get().attachments[0]["bytes"] is None


def test_a_file_that_the_provider_does_not_have_is_given_up_at_once(fetcher: FileFetcher, channel: Channel) -> None:
    send(channel, Media("gone"))

    upload = fetched(fetcher, channel)
    assert (upload.problem, upload.tries) == ("The file is gone.", 1)


@pytest.mark.parametrize("most", [len(PNG) - 1, len(PNG) // 2])
def test_a_file_that_is_too_large_is_not_kept(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(media, "MOST_BYTES", most)

    send(channel, Media("a"))

    assert fetched(fetcher, channel).problem == "The file has more than 16 MiB."
    assert len(shelf.called("/files/a")) == 1


def test_a_file_that_is_said_to_be_too_large_is_not_asked_for(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf
) -> None:
    send(channel, Media("a", bytes=media.MOST_BYTES + 1))

    assert fetched(fetcher, channel).problem == "The file has more than 16 MiB."
    assert shelf.calls == []


def test_a_private_address_is_not_dialled(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shelf, "url", "https://10.0.0.1")

    send(channel)

    assert fetched(fetcher, channel).file is None
    assert len(shelf.called("/where/a")) == 1


def test_a_name_that_leads_to_a_private_address_by_now_is_not_dialled(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shelf, "url", f"https://files.example:{shelf.port}")
    asked: list[bytes] = []

    def getaddrinfo(host: bytes, *_: object, **__: object) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", shelf.port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    send(channel)

    upload = fetched(fetcher, channel)
    assert (upload.file, asked) == (None, [b"files.example"])
    assert upload.problem == "The address resolves to 169.254.169.254, which is not public."


@pytest.mark.parametrize("path", ["/where/a", "/files/a"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_its_token_is_not_kept(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, path: str, status: int
) -> None:
    shelf.files["inside"] = b"what only we can reach"
    shelf.always(Reply(status, headers={"Location": f"{shelf.url}/files/inside?token=s3cret"}), path)

    send(channel)

    assert fetched(fetcher, channel).file is None
    assert len(shelf.called(path, is_taken=False)) == 3
    assert shelf.called("/files/inside", is_taken=False) == []
    assert "s3cret" not in everything_stored()


def test_without_room_on_the_disk_it_is_fetched_later(
    fetcher: FileFetcher, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, full = files.write, [True]

    def write(*arguments: Any) -> int:
        if full:
            full.clear()
            raise OSError(28, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(files, "write", write)

    send(channel)

    upload = fetched(fetcher, channel)
    assert (upload.file is not None, upload.tries) == (True, 0)


@pytest.mark.parametrize("bound", ["STORED_PER_CHANNEL", "STORED_BY_CONTACTS"])
def test_beyond_the_allowance_it_is_fetched_when_the_hour_is_over(
    fetcher: FileFetcher, channel: Channel, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    set_bound(monkeypatch, bound, 1)
    send(channel)
    fetcher.wake(channel.id)
    until(lambda: one("SELECT next_attempt_at IS NOT NULL FROM uploads"))

    row = Upload.get()
    assert (row.tries, row.problem) == (0, "The channel's contacts sent too much within an hour.")
    assert one("SELECT next_attempt_at > now() + interval '55 minutes' FROM uploads")
    assert one("SELECT coalesce(sum(bytes), 0) FROM stored_bytes") == 0


def test_while_the_disk_is_nearly_full_nothing_is_asked_for(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "LEAST_FREE", 2**60)
    send(channel)
    fetcher.wake(channel.id)
    until(lambda: one("SELECT next_attempt_at IS NOT NULL FROM uploads"))

    assert (Upload.get().problem, shelf.calls) == ("There was no room for the file.", [])


def test_the_files_of_a_channel_that_was_deleted_are_given_up(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf
) -> None:
    send(channel)
    rows("UPDATE channels SET deleted_at = now()")

    assert fetched(fetcher, channel).problem == "The channel was deleted before."
    assert shelf.calls == []


def test_a_channel_whose_provider_hangs_delays_no_other(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, api: Api
) -> None:
    shelf.always(Trouble.HANG, "/where/a")
    other = make_post(api.workspace_id, files=shelf.url)
    shelf.files["b"] = PNG
    for number in range(3 * fetches.MOST_EACH):
        send(channel, key=str(number))
    send(other, Media("b"))

    fetcher.wake(channel.id, other.id)

    until(lambda: one("SELECT file FROM uploads WHERE channel_id = %s", other.id))
    assert len(shelf.called("/where/a")) == fetches.MOST_EACH
    shelf.stop()
    shelf.start()


def test_the_file_of_a_worker_that_died_is_fetched_by_another(fetcher: FileFetcher, channel: Channel) -> None:
    send(channel)
    fetches.claim({channel.id: 1})
    rows("UPDATE uploads SET leased_until = now() - interval '1 second'")

    assert fetched(fetcher, channel).file is not None


def test_what_is_recorded_under_an_old_claim_changes_nothing(channel: Channel) -> None:
    send(channel)
    [dispatch] = fetches.claim({channel.id: 1}).dispatches
    rows("UPDATE uploads SET leased_until = NULL")
    fetches.claim({channel.id: 1})

    fetches.record([fetches.Fetched(dispatch.claimed, verdict=fetches.TOO_LARGE)])

    assert one("SELECT due_at IS NOT NULL AND problem IS NULL FROM uploads")


# For runs


def ask(channel: Channel, address: str) -> str:
    """A run waits for a file from this address; returns the run."""
    contact_id = ids.new("con")
    rows("INSERT INTO contacts (id, workspace_id) VALUES (%s, %s)", (contact_id, channel.workspace_id))
    run_id = make_run(channel.workspace_id, contact_id, waits_for="file", resume_at="2126-01-01T00:00:00Z")

    def task(unit: Unit, _: Contact) -> None:
        media.expect(unit, channel, [Media(address, name="bill.pdf")], run_id=run_id)

    locked(channel.workspace_id, contact_id, task)
    return run_id


def test_a_run_is_hurried_with_its_file_so_that_no_death_comes_between(channel: Channel) -> None:
    run_id = ask(channel, "https://shop.example/bill.pdf")

    media.keep(one("SELECT id FROM uploads"), PNG)

    assert is_hurried(run_id)


def is_hurried(run_id: str) -> bool:
    return bool(one("SELECT resume_at <= now() FROM runs WHERE id = %s", run_id))


def test_a_file_for_a_run_is_fetched_from_its_address_and_the_run_goes_on(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf
) -> None:
    run_id = ask(channel, f"{shelf.url}/files/a")

    upload = fetched(fetcher, channel)

    assert (media.load(upload.id).content, upload.content_type, upload.source) == (PNG, "image/png", None)
    assert (upload.run_id, upload.message_id, upload.expires_at is None) == (run_id, None, False)
    until(lambda: is_hurried(run_id))
    assert [call.path for call in shelf.calls] == ["/files/a"]


def test_a_file_for_a_run_is_given_up_after_three_attempts(
    fetcher: FileFetcher, channel: Channel, monkeypatch: pytest.MonkeyPatch, shelf: Shelf
) -> None:
    monkeypatch.setattr(fetches, "PAUSES_SECONDS", (0.05,) * 6)
    run_id = ask(channel, f"{shelf.url}/files/none")

    upload = fetched(fetcher, channel)

    assert (upload.problem, upload.tries) == ("The server answered 404 (Not Found).", 3)
    until(lambda: is_hurried(run_id))
    assert len(shelf.calls) == 3


def test_a_private_address_of_a_run_is_not_dialled(
    fetcher: FileFetcher, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    run_id = ask(channel, "https://files.example/latest/meta-data")

    upload = fetched(fetcher, channel)

    assert (upload.file, upload.tries) == (None, 1)
    assert upload.problem == "The address resolves to 169.254.169.254, which is not public."
    until(lambda: is_hurried(run_id))


def test_a_redirect_of_a_run_is_not_followed(fetcher: FileFetcher, channel: Channel, shelf: Shelf) -> None:
    shelf.always(Reply(302, headers={"Location": f"{shelf.url}/files/inside?token=s3cret"}), "/files/a")
    ask(channel, f"{shelf.url}/files/a")

    assert fetched(fetcher, channel).file is None
    assert "s3cret" not in everything_stored()


def test_a_file_that_is_too_large_for_a_run_is_not_kept(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "MOST_BYTES", len(PNG) - 1)
    ask(channel, f"{shelf.url}/files/a")

    upload = fetched(fetcher, channel)
    assert (upload.problem, upload.tries) == ("The file has more than 16 MiB.", 1)


def test_a_file_that_no_run_waits_for_is_not_fetched(fetcher: FileFetcher, channel: Channel, shelf: Shelf) -> None:
    run_id = ask(channel, f"{shelf.url}/files/a")
    rows("UPDATE runs SET waits_for = NULL, status = 'cancelled', finished_at = now() WHERE id = %s", (run_id,))

    assert fetched(fetcher, channel).problem == "The run has ended before."
    assert shelf.calls == []


def test_files_of_runs_have_the_allowance_of_the_workspace(
    fetcher: FileFetcher, channel: Channel, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_bound(monkeypatch, "STORED_PER_WORKSPACE", 1)
    ask(channel, f"{shelf.url}/files/a")
    fetcher.wake(channel.id)
    until(lambda: one("SELECT next_attempt_at IS NOT NULL FROM uploads"))

    assert Upload.get().problem == "The workspace stored too much within an hour."
