"""Detects the encoding of text: by its byte order mark, its declared charset, or its bytes."""

from __future__ import annotations

import codecs
import re
from typing import IO

from werkzeug.http import parse_options_header

UTF_8 = "utf-8"
WINDOWS = "cp1252"
_PIECE_BYTES = 1024 * 1024
# The mark of UTF-32 begins with the mark of UTF-16.
_MARKS = (
    *((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32")),
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
)
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,39}")
# Excludes Python's codecs that are slow, or not encodings of text.
_KNOWN = re.compile(
    r"utf-(8|16|32)(-[lb]e)?|iso8859-\d+|cp125\d|cp8\d\d|koi8-[ru]|mac-roman"
    r"|gb2312|gbk|gb18030|big5|shift_jis|cp932|euc_(jp|kr)|cp949"
)


def of_file(file: IO[bytes]) -> str:
    """Returns the encoding of the file: by its byte order mark, else UTF-8, UTF-16 or Windows-1252.

    A file with a few damaged bytes still counts as UTF-8. Rewinds the file.
    """
    file.seek(0)
    head = file.read(4096)
    encoding = _marked(head) or _unmarked(head)
    if encoding == UTF_8:
        file.seek(0)
        encoding = _of_pieces(file)
    file.seek(0)
    return encoding


def text_of(body: bytes, content_type: str | None) -> str:
    """Decodes a response by its byte order mark, else by the type's `charset`, else by its bytes.

    Many servers declare UTF-8 or Latin-1 and write the other, so that these two also depend on the bytes. Replaces
    undecodable bytes with U+FFFD.
    """
    encoding = _marked(body) or _declared(content_type)
    if encoding is None:
        encoding = _unmarked(body[:4096])
    # Text contains no NUL: a body with one is binary.
    if encoding == UTF_8 and b"\0" not in body and _is_windows(body):
        encoding = WINDOWS
    elif encoding == WINDOWS and _is_utf_8(body):
        encoding = UTF_8
    return body.decode(encoding, "replace")


def _marked(head: bytes) -> str | None:
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), None)


def _unmarked(head: bytes) -> str:
    """Returns UTF-16 if the first two characters would be ASCII in it, else UTF-8."""
    are_zero = [byte == 0 for byte in head[:4]]
    if are_zero == [False, True, False, True]:
        return "utf-16-le"
    return "utf-16-be" if are_zero == [True, False, True, False] else UTF_8


def _declared(content_type: str | None) -> str | None:
    """Returns the declared encoding; None if unknown. Latin-1 counts as Windows-1252, as in browsers."""
    label = parse_options_header(content_type)[1].get("charset", "")
    if not _LABEL.fullmatch(label):
        return None
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return None
    if name in ("iso8859-1", "ascii"):
        return WINDOWS
    return name if _KNOWN.fullmatch(name) else None


def _of_pieces(file: IO[bytes]) -> str:
    decoder = codecs.getincrementaldecoder(UTF_8)("replace")
    good = bad = 0
    while piece := file.read(_PIECE_BYTES):
        found = _counts(decoder.decode(piece))
        good, bad = good + found[0], bad + found[1]
    bad += len(decoder.decode(b"", final=True))
    return WINDOWS if bad > good else UTF_8


def _is_windows(body: bytes) -> bool:
    good, bad = _counts(body.decode(UTF_8, "replace"))
    return bad > good


def _is_utf_8(body: bytes) -> bool:
    """Whether the body, whose last character may be incomplete, is valid UTF-8."""
    try:
        codecs.getincrementaldecoder(UTF_8)().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def _counts(text: str) -> tuple[int, int]:
    """Counts the decoded non-ASCII characters, and the bytes that could not be decoded."""
    if text.isascii():
        return 0, 0
    bad = text.count("\ufffd")
    return len(text) - len(text.encode("ascii", "ignore")) - bad, bad
