"""Detects types of files from their content, as browsers do (WHATWG MIME Sniffing)."""

from __future__ import annotations

import re

# How many bytes of a file `sniff` needs.
HEAD_BYTES = 4096

# Types that a browser shows without running anything in them. SVG, HTML and PDF can contain scripts.
SAFE_INLINE = frozenset(
    {
        *("image/jpeg", "image/png", "image/gif", "image/webp", "image/avif", "image/bmp"),
        *("audio/mpeg", "audio/mp4", "audio/aac", "audio/amr", "audio/ogg", "audio/wav"),
        *("video/mp4", "video/webm", "video/ogg", "video/quicktime", "video/3gpp"),
    }
)

_SIGNATURES = (
    (rb"\xff\xd8\xff", "image/jpeg"),
    (rb"\x89PNG\r\n\x1a\n", "image/png"),
    (rb"GIF8[79]a", "image/gif"),
    (rb"BM.{4}\0\0\0\0", "image/bmp"),
    (rb"II\*\0|MM\0\*", "image/tiff"),
    (rb"RIFF.{4}WEBP", "image/webp"),
    (rb"RIFF.{4}WAVE", "audio/wav"),
    (rb"RIFF.{4}AVI ", "video/x-msvideo"),
    (rb".{4}ftypavi[fs]", "image/avif"),
    (rb".{4}ftyp(hei|mif1)", "image/heic"),
    (rb".{4}ftypM4[AB]", "audio/mp4"),
    (rb".{4}ftypqt", "video/quicktime"),
    (rb".{4}ftyp3g", "video/3gpp"),
    (rb".{4}ftyp", "video/mp4"),
    (rb"OggS.{0,80}theora", "video/ogg"),
    (rb"OggS", "audio/ogg"),
    (rb"\x1aE\xdf\xa3.{0,64}webm", "video/webm"),
    (rb"\x1aE\xdf\xa3", "video/x-matroska"),
    (rb"#!AMR", "audio/amr"),
    (rb"\xff[\xf1\xf9]", "audio/aac"),
    (rb"ID3|\xff[\xfb\xf3\xf2\xfa]", "audio/mpeg"),
    (rb"%PDF-", "application/pdf"),
    (rb"PK\x03\x04", "application/zip"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (rb"\x1f\x8b\x08", "application/gzip"),
    (rb"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (rb"Rar!\x1a\x07", "application/vnd.rar"),
)
_PATTERNS = tuple((re.compile(signature, re.DOTALL), found) for signature, found in _SIGNATURES)
_OFFICE = "application/vnd.openxmlformats-officedocument."
# Types that share a format, told apart by the name. The name only counts if the content has that format.
_BY_NAME = {
    ("application/zip", "docx"): f"{_OFFICE}wordprocessingml.document",
    ("application/zip", "xlsx"): f"{_OFFICE}spreadsheetml.sheet",
    ("application/zip", "pptx"): f"{_OFFICE}presentationml.presentation",
    ("application/x-ole-storage", "doc"): "application/msword",
    ("application/x-ole-storage", "xls"): "application/vnd.ms-excel",
    ("application/x-ole-storage", "ppt"): "application/vnd.ms-powerpoint",
    ("text/plain", "csv"): "text/csv",
    ("text/plain", "vcf"): "text/vcard",
    ("text/plain", "ics"): "text/calendar",
}
# Control characters that the standard considers binary data.
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def sniff(head: bytes, name: str | None = None) -> str:
    """Returns the type of a file that begins with `head`, whatever its sender claims.

    All text is text/plain, HTML and SVG included. `name` only tells apart formats that begin alike.
    """
    found = next((kind for pattern, kind in _PATTERNS if pattern.match(head)), None) or _of_text(head)
    return _BY_NAME.get((found, (name or "").rpartition(".")[2].lower()), found)


def _of_text(head: bytes) -> str:
    if not head or _BINARY.search(head):
        return "application/octet-stream"
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # The head may end in the middle of a character.
        if error.start < len(head) - 3:
            return "application/octet-stream"
    return "text/plain"
