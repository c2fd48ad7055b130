from __future__ import annotations

import io

import pytest

from app.lib import encodings

JSON = '{"name": "Müller"}'


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (JSON.encode(), None),
        (JSON.encode(), "application/json; charset=bogus"),
        (JSON.encode(), "application/json; charset=base64"),
        (JSON.encode(), "application/json; charset=\x00\r\n" + "x" * 5000),
        (JSON.encode("utf-8-sig"), "application/json"),
        (JSON.encode("utf-8-sig"), "text/html; charset=iso-8859-1"),
        (JSON.encode("latin-1"), 'application/json; charset="ISO-8859-1"'),
        (JSON.encode("latin-1"), "application/json"),
        (JSON.encode("latin-1"), "application/json; charset=utf-8"),
        (JSON.encode(), "text/html; charset=iso-8859-1"),
        (JSON.encode("utf-32"), "application/json"),
        (JSON.encode("utf-16"), "application/json; charset=utf-16"),
        (JSON.encode("utf-16-be"), "application/json; charset=UTF-16BE"),
        (JSON.encode("utf-16-le"), None),
        (JSON.encode("cp850"), "text/plain; charset=ibm850"),
    ],
)
def test_the_text_of_a_response_is_read_as_it_was_written(body: bytes, content_type: str | None) -> None:
    assert encodings.text_of(body, content_type) == JSON


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"", None, ""),
        (b"\x80", "text/plain; charset=latin-1", "€"),
        ("größer".encode() + b"\xff", None, "größer\ufffd"),
        ("größe".encode()[:-1] + b"\xc3", None, "größ\ufffd"),
        ("größer".encode() + b"\xff", "text/plain; charset=utf-8", "größer\ufffd"),
        ("größe".encode()[:-2], "text/plain; charset=latin-1", "grö\ufffd"),
    ],
)
def test_what_cannot_be_decoded_is_replaced(body: bytes, content_type: str | None, text: str) -> None:
    assert encodings.text_of(body, content_type) == text


@pytest.mark.parametrize(
    ("file", "encoding"),
    [
        (b"email\n", "utf-8"),
        ("größe\n".encode(), "utf-8"),
        ("größe\n".encode("utf-8-sig"), "utf-8-sig"),
        ("größe\n".encode("cp1252"), "cp1252"),
        (b"a" * 2_000_000 + "é".encode("cp1252"), "cp1252"),
        ("größe\n".encode("utf-16"), "utf-16"),
        ("größe\n".encode("utf-16-le"), "utf-16-le"),
        ("größe grün\n".encode() + b"\xff", "utf-8"),
        (b"", "utf-8"),
        (b"\0\0\0", "utf-8"),
    ],
)
def test_the_encoding_of_a_file_is_found(file: bytes, encoding: str) -> None:
    assert encodings.of_file(io.BytesIO(file)) == encoding
