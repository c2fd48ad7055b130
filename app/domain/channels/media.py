"""Media: the files of messages, stored under MEDIA_DIR.

A file's row is stored before the file and deleted after it, so that no file is left behind, even if a process dies.
"""

from __future__ import annotations

import hmac
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import structlog
from marshmallow import fields
from peewee import fn

from app import bounds, metrics, process_registry
from app.channels.base import File
from app.channels.inbound import Media
from app.config import settings
from app.database import count, rows, transaction
from app.domain.work.units import Unit
from app.errors import Fault, Invalid, NotFound, TooLarge, Unavailable
from app.lib import file_types, files, ids, json, keys
from app.lib.schemas import ResponseBody, about, time
from app.models.channels import Channel
from app.models.uploads import Upload

log = structlog.get_logger(__name__)

MOST_BYTES = 16 * 1024**2
MOST_NAME = 200
MOST_FILES = 10  # files of a message; a kind of channel may allow fewer
# Hours after which an upload that is not attached expires: in general, and if a visitor uploaded it.
KEPT_HOURS = 24
VISITORS_KEPT_HOURS = 1
# Allows one attempt at a time: a network disk that hangs must not block all threads of `web`.
_trying = threading.Lock()
_PATIENCE_SECONDS = 2.0
# The file that identifies a MEDIA_DIR: directories on several machines may have the same path.
MARK = ".bellhop"


def store(
    workspace_id: str, name: str | None, content: bytes | Iterable[bytes], *, visitor_id: str | None = None
) -> Upload:
    """Stores the file for a later message, and returns its row.

    Raises TooLarge above MOST_BYTES, Invalid for an empty file, Unavailable, and any error of the iterable `content`.
    """
    upload_id, clean = ids.new("upl"), _clean(name)
    kept_hours = KEPT_HOURS if visitor_id is None else VISITORS_KEPT_HOURS
    rows(
        """
        INSERT INTO uploads (id, workspace_id, visitor_id, name, expires_at)
        VALUES (%s, %s, %s, %s, now() + %s * interval '1 hour')
        """,
        (upload_id, workspace_id, visitor_id, clean, kept_hours),
    )
    try:
        content_type, length = _write(upload_id, clean, content)
        if length == 0:
            raise Invalid(Fault("", "The file is empty."))
    except BaseException:
        with suppress(OSError):  # if the directory is not writable, the row and the file stay until they expire
            delete_files([upload_id])
        raise
    count(
        "UPDATE uploads SET file = %s, content_type = %s, bytes = %s WHERE id = %s",
        (_relative(upload_id), content_type, length, upload_id),
    )
    return Upload.get_by_id(upload_id)


def check_uploads(workspace_id: str, upload_ids: Sequence[str]) -> None:
    """Raises Invalid, with a fault for each file that cannot be attached to a message now."""
    if not upload_ids:
        return
    is_free = (Upload.expires_at > fn.now()) & Upload.message_id.is_null() & Upload.visitor_id.is_null()
    may_be_sent = is_free | Upload.saved_reply_id.is_null(False)
    found = Upload.in_workspace(workspace_id).where(Upload.id.in_(upload_ids), Upload.file.is_null(False), may_be_sent)
    known = {row.id for row in found}
    if faults := [_missing(index) for index, upload_id in enumerate(upload_ids) if upload_id not in known]:
        raise Invalid(*faults)


def claim_uploads(
    unit: Unit, workspace_id: str, upload_ids: Sequence[str], message_id: str, *, visitor_id: str | None = None
) -> list[dict[str, Any]]:
    """Attaches the files to the message for good, and returns its `attachments`.

    A saved reply keeps its files. Raises Busy, and Invalid if a file is missing, expired, attached already or uploaded
    by somebody else. `visitor_id`: None for members' files.
    """
    attachments = []
    for index, upload_id in enumerate(upload_ids):
        found = _locked(unit, workspace_id, upload_id)
        if found is not None and found.saved_reply_id is not None and visitor_id is None:
            claimed = unit.put(found.altered(was_sent=True))
        else:
            claimed = unit.put(_free(unit, found, index, visitor_id).altered(message_id=message_id, expires_at=None))
        attachments.append(_attachment_of(claimed))
    return attachments


def give(unit: Unit, workspace_id: str, upload_ids: Sequence[str], keeper_id: str) -> list[dict[str, Any]]:
    """Gives the files to a saved reply or broadcast (which may have some); returns its `attachments`.

    Raises Busy, and Invalid if a file is missing, expired or attached elsewhere.
    """
    attachments = []
    for index, upload_id in enumerate(upload_ids):
        found = _locked(unit, workspace_id, upload_id)
        if found is None or found.saved_reply_id != keeper_id:
            found = unit.put(_free(unit, found, index).altered(saved_reply_id=keeper_id, expires_at=None))
        attachments.append(_attachment_of(found))
    return attachments


def detach(unit: Unit, workspace_id: str, upload_ids: Iterable[str]) -> None:
    """Detaches the files from a saved reply or broadcast. Unsent files expire at once. Raises Busy."""
    for upload_id in upload_ids:
        if (found := _locked(unit, workspace_id, upload_id)) is not None:
            unit.put(found.altered(saved_reply_id=None, expires_at=None if found.was_sent else unit.now))


def _locked(unit: Unit, workspace_id: str, upload_id: str) -> Upload | None:
    return unit.get(Upload, workspace_id, "id", upload_id) if ids.is_id(upload_id, "upl") else None


def _free(unit: Unit, upload: Upload | None, index: int, visitor_id: str | None = None) -> Upload:
    """Returns the upload if it is stored and unattached. Otherwise raises Invalid for `index`."""
    if upload is None or upload.file is None or upload.message_id is not None or upload.visitor_id != visitor_id:
        raise Invalid(_missing(index))
    if upload.expires_at is None or upload.expires_at <= unit.now:
        raise Invalid(_missing(index))
    return upload


def _attachment_of(upload: Upload) -> dict[str, Any]:
    """Returns the file as one of a message's `attachments`. `bytes` is None until it is stored."""
    return {name: getattr(upload, name) for name in ("id", "name", "content_type", "bytes")}


def expect(
    unit: Unit, channel: Channel, media: Sequence[Media], *, message_id: str | None = None, run_id: str | None = None
) -> list[dict[str, Any]]:
    """Queues fetches of the files from the channel's provider; returns the `attachments`.

    For a run, `ref` is any address, and the file can be attached for KEPT_HOURS. The caller must ring for the channel
    after the commit.
    """
    attachments = []
    for each in media:
        row = Upload(
            id=ids.new("upl"),
            workspace_id=channel.workspace_id,
            channel_id=channel.id,
            message_id=message_id,
            run_id=run_id,
            expires_at=None if run_id is None else unit.now + timedelta(hours=KEPT_HOURS),
            name=_clean(each.name),
            content_type=each.content_type,
            source={"ref": each.ref, "content_type": each.content_type, "name": each.name, "bytes": each.bytes},
            due_at=unit.now,
            created_at=unit.now,
        )
        unit.put(row)
        attachments.append(_attachment_of(row))
    return attachments


def keep(upload_id: str, content: bytes | Iterable[bytes]) -> None:
    """Stores the content of an expected file, completes the attachment, and wakes the waiting run.

    Safe to repeat. Does nothing if the row is gone. Raises TooLarge, Unavailable and any error of the iterable.
    """
    found = Upload.get_or_none(Upload.id == upload_id)
    if found is None:
        return
    content_type, length = _write(upload_id, found.name, content)
    with transaction():
        hurry_runs([found.run_id])  # first: a worker that continues the run locks the run before its files
        stored = rows(
            """
            UPDATE uploads SET file = %s, content_type = %s, bytes = %s, source = NULL, due_at = NULL,
                leased_until = NULL, next_attempt_at = NULL
            WHERE id = %s RETURNING message_id
            """,
            (_relative(upload_id), content_type, length, upload_id),
        )
        for (message_id,) in stored:
            _complete(message_id, upload_id, {"content_type": content_type, "bytes": length})
    if not stored:
        delete_files([upload_id])


def load(upload_id: str) -> File:
    """Returns the file with its content. Raises NotFound if it is not stored."""
    found = Upload.get_or_none((Upload.id == upload_id) & Upload.file.is_null(False))
    try:
        if found is not None:
            name = found.name or f"{(found.content_type or 'file').partition('/')[0]}-{found.id[-6:]}"
            return File(name, found.content_type or "", path_of(found).read_bytes())
    except FileNotFoundError:
        log.error("media.file_missing", upload_id=upload_id)
    raise NotFound


def find(upload_id: str, proof: str) -> Upload:
    """Returns the file to serve at an address with this proof. Raises NotFound."""
    if not any(hmac.compare_digest(proof.encode(), each.encode()) for each in _proofs(upload_id)):
        raise NotFound
    found: Upload | None = Upload.get_or_none((Upload.id == upload_id) & Upload.file.is_null(False))
    if found is None:
        raise NotFound
    return found


def path_of(upload: Upload) -> Path:
    """Returns the path of the upload's content under MEDIA_DIR."""
    return settings().media_dir / _relative(upload.id)


class AttachmentSchema(ResponseBody):
    id = fields.String()
    name = fields.String(allow_none=True, metadata={"example": "receipt.pdf"})
    content_type = fields.String(allow_none=True, metadata=about("Found from the content.", example="application/pdf"))
    bytes = fields.Integer(allow_none=True, metadata=about("null: still at the provider.", example=48213))
    address = fields.String(
        allow_none=True,
        metadata=about(
            "Where the file is served, without a token; null while it is still at the provider.",
            example=f"https://bellhop.example/media/upl_01kaj5bd40e6rr3f5y2kq0w9xz/{'0' * 32}",
        ),
    )


def shown(attachments: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns `attachments` as the API shows them. `address` is None until the file is stored."""
    return [{**each, "address": None if each["bytes"] is None else address_of(each["id"])} for each in attachments]


class UploadSchema(ResponseBody):
    id = fields.String()
    name = fields.String(allow_none=True, metadata={"example": "receipt.pdf"})
    content_type = fields.String(metadata=about("Found from the content.", example="application/pdf"))
    bytes = fields.Integer(metadata={"example": 48213})
    expires_at = time("When the file is deleted unless a message has it by then.")


represent = UploadSchema.of


def delete_files(upload_ids: Sequence[str]) -> None:
    """Deletes the files and then their rows. Safe to repeat."""
    for upload_id in upload_ids:
        (settings().media_dir / _relative(upload_id)).unlink(missing_ok=True)
    rows("DELETE FROM uploads WHERE id = ANY(%s)", (list(upload_ids),))


def delete_expired(limit: int = 100) -> int:
    """Deletes up to `limit` expired files, such as uploads never attached; returns how many."""
    # Without `file`, the row can no longer be attached. If this process dies, the row is found again.
    expired = rows(
        """
        UPDATE uploads SET file = NULL WHERE id = ANY(ARRAY(
            SELECT id FROM uploads WHERE expires_at < now() ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED))
        RETURNING id
        """,
        (limit,),
    )
    delete_files([upload_id for (upload_id,) in expired])
    return len(expired)


def address_of(upload_id: str) -> str:
    """Returns the address at which the file is served. It cannot be guessed, and needs no token."""
    return f"{settings().base_url}/media/{upload_id}/{_proofs(upload_id)[0]}"


def hurry_runs(run_ids: Iterable[str | None]) -> None:
    """Makes the waiting runs check their files now, not only when their wait ends."""
    if wanted := [run_id for run_id in run_ids if run_id is not None]:
        is_early = "id = ANY(%s) AND waits_for = 'file' AND resume_at > now()"
        count(f"UPDATE runs SET resume_at = now() WHERE {is_early}", (wanted,))


def check_room() -> None:
    """Raises Unavailable if a disk for files is nearly full, or its free space is unknown."""
    try:
        free = free_bytes()
    except OSError as error:
        log.error("media.disk_unknown", error=str(error))
        raise Unavailable("Files cannot be stored at this moment. Try again later.") from error
    if free < bounds.LEAST_FREE.most:
        bounds.LEAST_FREE.reached()
        raise Unavailable("There is too little room for files at this moment. Try again later.")


def free_bytes() -> int:
    """Returns the free bytes under MEDIA_DIR or for temporary files, the smaller one. Raises OSError."""
    place = Path(settings().media_dir).absolute()
    while not os.path.exists(place):  # unlike Path.exists, does not raise without permission
        place = place.parent  # MEDIA_DIR is made by the first file
    paths = {"media": str(place), "temporary": tempfile.gettempdir()}
    free = {name: shutil.disk_usage(path).free for name, path in paths.items()}
    for name, number in free.items():
        metrics.MEDIA_FREE.labels(name).set(number)
    return min(free.values())


def try_writing() -> None:
    """Writes and deletes a file under MEDIA_DIR, made if missing. Raises OSError with the path."""
    directory = Path(settings().media_dir).absolute()
    if not _trying.acquire(timeout=_PATIENCE_SECONDS):
        raise _refused(directory, TimeoutError("does not answer"))
    try:
        files.make_directory(directory)
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(bytes(4096))
            file.flush()
    except OSError as error:
        raise _refused(directory, error) from error
    finally:
        _trying.release()


def mark() -> str:
    """Returns MEDIA_DIR's mark, made if missing; "" while another process makes it. Raises OSError."""
    directory = Path(settings().media_dir).absolute()
    files.make_directory(directory)
    try:
        descriptor = os.open(directory / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, files.FILE_MODE)
    except FileExistsError:
        return (directory / MARK).read_text()
    with os.fdopen(descriptor, "w") as file:
        file.write(made := uuid4().hex)
    return made


def tell_mark() -> None:
    """Reports this process's MEDIA_DIR mark, for the check that all processes share one directory."""
    try:
        process_registry.tell("files", mark())
    except OSError as error:
        log.warning("media.mark_unknown", error=str(error))


def _write(upload_id: str, name: str | None, content: bytes | Iterable[bytes]) -> tuple[str, int]:
    path, head = settings().media_dir / _relative(upload_id), bytearray()

    def watched() -> Iterable[bytes]:
        for part in [content] if isinstance(content, bytes) else content:
            head.extend(part[: file_types.HEAD_BYTES - len(head)])
            yield part

    try:
        length = files.write(path, watched(), MOST_BYTES)
    except files.TooLong:
        raise TooLarge(f"A file has at most {MOST_BYTES // 1024**2} MiB.") from None
    except OSError as error:
        metrics.DISK_REFUSALS.labels("media").inc()
        log.error("media.not_kept", upload_id=upload_id, directory=str(settings().media_dir), error=str(error))
        raise Unavailable("The file cannot be stored at this moment. Try again shortly.") from error
    tell_mark()
    return file_types.sniff(bytes(head), name), length


def _complete(message_id: str | None, upload_id: str, facts: Mapping[str, Any]) -> None:
    for (attachments,) in rows("SELECT attachments FROM messages WHERE id = %s FOR NO KEY UPDATE", (message_id,)):
        completed = [{**each, **facts} if each["id"] == upload_id else each for each in attachments]
        count("UPDATE messages SET attachments = %s WHERE id = %s", (json.dumps(completed).decode(), message_id))


def _missing(index: int) -> Fault:
    detail = "There is no such upload, or it was attached before; each can be attached once, within a day."
    return Fault(f"/attachments/{index}/upload_id", detail)


def _relative(upload_id: str) -> str:
    # The last characters of an id are random, so that no directory gets too many files.
    return f"{upload_id[-2:]}/{upload_id}"


def _clean(name: str | None) -> str | None:
    """Returns the name without directories and control characters; None if nothing is left."""
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    return "".join(each for each in last if each.isprintable()).strip(" .")[-MOST_NAME:] or None


def _proofs(upload_id: str) -> list[str]:
    """Returns the unguessable part of the file's address, for each key in SECRET_KEY, newest first."""
    return [
        hmac.digest(keys.derived(secret, "media"), upload_id.encode(), sha256).hex()[:32]
        for secret in settings().secret_keys
    ]


def _refused(directory: Path, error: OSError) -> OSError:
    metrics.DISK_REFUSALS.labels("media").inc()
    return OSError(f"MEDIA_DIR ({directory}) cannot be written: {error.strerror or error}")
