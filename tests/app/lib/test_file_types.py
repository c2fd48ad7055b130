"""Types of files: told by their content, never by what their sender says."""

from __future__ import annotations

import pytest

from app.lib.file_types import HEAD_BYTES, SAFE_INLINE, sniff

CONTENTS = {
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "image/gif": b"GIF89a\1\0\1\0",
    "image/webp": b"RIFF\x24\0\0\0WEBPVP8 ",
    "image/avif": b"\0\0\0\x20ftypavif\0\0\0\0",
    "image/heic": b"\0\0\0\x20ftypheic\0\0\0\0",
    "audio/wav": b"RIFF\x24\0\0\0WAVEfmt ",
    "audio/mp4": b"\0\0\0\x20ftypM4A \0\0\0\0",
    "audio/ogg": b"OggS\0\2" + bytes(22) + b"OpusHead",
    "audio/mpeg": b"ID3\4\0\0\0",
    "audio/amr": b"#!AMR\n",
    "video/mp4": b"\0\0\0\x20ftypisom\0\0\2\0",
    "video/quicktime": b"\0\0\0\x14ftypqt  ",
    "video/3gpp": b"\0\0\0\x18ftyp3gp4",
    "video/webm": b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\xf7\x81\1B\x82\x84webm",
    "application/pdf": b"%PDF-1.7\n",
    "application/zip": b"PK\3\4\x14\0",
    "text/plain": "Grüße\n".encode(),
    "application/octet-stream": b"\0\1\2\3",
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_file_is_what_its_content_says(kind: str) -> None:
    assert sniff(CONTENTS[kind], "picture.png") == kind


@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE html><script>alert(1)</script>",
        b"  <html><body onload=alert(1)>",
        b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
        b"<svg onload=alert(1)>",
        b"alert(1)",
    ],
)
def test_what_could_run_a_script_is_plain_text(content: bytes) -> None:
    assert sniff(content, "logo.svg") == "text/plain"


def test_the_name_only_tells_apart_what_begins_alike() -> None:
    office = "application/vnd.openxmlformats-officedocument."

    assert sniff(CONTENTS["application/zip"], "Offer.DOCX") == f"{office}wordprocessingml.document"
    assert sniff(b"a,b\n1,2\n", "list.csv") == "text/csv"
    assert sniff(CONTENTS["image/png"], "list.csv") == "image/png"


def test_a_text_may_be_cut_within_a_character() -> None:
    assert sniff(("x" * (HEAD_BYTES - 1) + "ü").encode()[:HEAD_BYTES]) == "text/plain"
    assert sniff(b"x\xfcxxxxx") == "application/octet-stream"


def test_an_empty_file_is_nothing_in_particular() -> None:
    assert sniff(b"") == "application/octet-stream"


def test_nothing_is_shown_inline_that_could_run_a_script() -> None:
    assert {kind.partition("/")[0] for kind in SAFE_INLINE} == {"image", "audio", "video"}
    assert "image/svg+xml" not in SAFE_INLINE
