"""Import lines: the contacts in an imported file, read and checked before it is accepted."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from app.config import settings
from app.domain.bodies.contacts import ContactUpsert, ImportedContact
from app.domain.bodies.objects import MAX_BODY_BYTES, OBJECT_REQUIRED, object_in
from app.domain.bodies.pointers import load, refuse_bad_text
from app.domain.lifecycle.imports import Line, Lines
from app.errors import BellhopError, Fault, Invalid, TooLarge, Unavailable, pointer_to
from app.lib import json
from app.problems import problem_of_error

MOST_LINES = 10_000
MOST_BYTES = 16 * 1024 * 1024
LONGEST_LINE_BYTES = MAX_BODY_BYTES  # as for a single contact
PATIENCE_SECONDS = 5.0

# Fields of an exported contact that are ignored, because only Bellhop sets them.
WRITTEN_BY_US = ("created_at", "updated_at")

T = TypeVar("T")
_upsert = ContactUpsert()
# Parsing and storing a file takes several times its size in memory, so a process handles one large file at a time.
_large_file = Lock()


def read(texts: Iterable[bytes]) -> Lines:
    """Sorts lines of JSON into good and bad ones. Raises Invalid without lines, or above MOST_LINES."""
    marked = (text.removeprefix(BOM_UTF8) if number == 1 else text for number, text in enumerate(texts, start=1))
    lines = sort_out((number, partial(_object, text)) for number, text in _numbered(marked) if text.strip())
    if not lines.good and not lines.bad:
        raise Invalid(Fault("", "Give at least one contact, as a line of JSON."))
    return lines


def read_list(text: str) -> Lines:
    """Reads an exported JSON list of contacts; null counts as not given. Raises Invalid like `read`."""
    try:
        contacts = json.loads(text)
    except ValueError as error:
        raise Invalid(Fault("", f"The file is not valid JSON: {error}.")) from error
    lines = sort_out(
        ((number, partial(_exported, contact)) for number, contact in _numbered(contacts)), ImportedContact()
    )
    if not lines.good and not lines.bad:
        raise Invalid(Fault("", "Give at least one contact."))
    return lines


def sort_out(
    lines: Iterable[tuple[int, Callable[[], dict[str, Any]]]],
    schema: ContactUpsert = _upsert,
    *,
    leave_out: bool = False,
) -> Lines:
    """Sorts lines into good and bad.

    `lines`: pairs of a line's number and a function that returns its contact. A line whose function raises BellhopError
    is bad. With `leave_out`, a line with bad fields is imported without the bad fields if it still identifies its
    contact.
    """
    sorted_out = Lines([], [], [])
    for number, contact in lines:
        try:
            body, left_out = _loaded(schema, contact(), leave_out)
        except BellhopError as error:
            sorted_out.bad.append(_problem(number, error))
            continue
        sorted_out.good.append(Line.of(number, body))
        if left_out is not None:
            sorted_out.left_out.append(_problem(number, left_out))
    return sorted_out


def _loaded(schema: ContactUpsert, contact: dict[str, Any], leave_out: bool) -> tuple[Any, Invalid | None]:
    """Returns the validated contact, and the error about fields left out, if any. Raises Invalid."""
    try:
        return load(schema, contact), None
    except Invalid as error:
        if not leave_out:
            raise
        kept = _without(contact, {fault.pointer for fault in error.faults})
        try:
            return load(schema, kept), error
        except Invalid:
            raise error from None


def _without(contact: dict[str, Any], pointers: Collection[str]) -> dict[str, Any]:
    """Returns the contact without the fields, custom fields and tags at these pointers."""
    kept = {name: value for name, value in contact.items() if pointer_to(name) not in pointers}
    if "custom_fields" in kept:
        fields = kept["custom_fields"].items()
        kept["custom_fields"] = {
            name: value for name, value in fields if pointer_to("custom_fields", name) not in pointers
        }
    if "tags" in kept:
        tags = enumerate(kept["tags"])
        kept["tags"] = [tag for place, tag in tags if pointer_to("tags", str(place)) not in pointers]
    return kept


def _problem(number: int, error: BellhopError) -> Line:
    return Line.of(number, problem_of_error(error, base_url=settings().base_url))


@contextmanager
def memory_for(size_bytes: int) -> Iterator[None]:
    """Waits until a file of that size may be in memory. Raises Unavailable after PATIENCE_SECONDS."""
    if size_bytes <= MAX_BODY_BYTES:
        yield
        return
    if not _large_file.acquire(timeout=PATIENCE_SECONDS):
        raise Unavailable("Other large imports are being read at this moment. Try again shortly.")
    try:
        yield
    finally:
        _large_file.release()


def _numbered(texts: Iterable[T]) -> Iterator[tuple[int, T]]:
    for number, text in enumerate(texts, start=1):
        if number > MOST_LINES:
            raise Invalid(Fault("", f"An import has at most {MOST_LINES:,} lines."))
        yield number, text


def _exported(contact: Any) -> dict[str, Any]:
    if not isinstance(contact, dict):
        raise Invalid(OBJECT_REQUIRED)
    if len(json.dumps(contact)) > LONGEST_LINE_BYTES:
        raise TooLarge(f"The contact is larger than {LONGEST_LINE_BYTES // 1024} KiB.")
    refuse_bad_text(contact)
    return {name: value for name, value in contact.items() if value is not None and name not in WRITTEN_BY_US}


def _object(text: bytes) -> dict[str, Any]:
    if len(text) > LONGEST_LINE_BYTES:
        raise TooLarge(f"The line is larger than {LONGEST_LINE_BYTES // 1024} KiB.")
    return object_in(text)
