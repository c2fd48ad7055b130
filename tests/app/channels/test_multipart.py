"""Forms are read by others as they were meant."""

from __future__ import annotations

from io import BytesIO

import pytest
from werkzeug.formparser import parse_form_data

from app.channels import multipart


def read(content_type: str, body: bytes) -> tuple[dict[str, str], dict[str, tuple[str | None, str | None, bytes]]]:
    environ = {
        "REQUEST_METHOD": "POST",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
    }
    _, fields, files = parse_form_data(environ)
    return dict(fields), {name: (file.filename, file.content_type, file.read()) for name, file in files.items()}


def test_fields_and_the_file_arrive_as_they_are() -> None:
    content = b"\r\n--\x00\xff\r\n"
    form = multipart.encode({"chat_id": "42", "caption": "Größe\r\nL 👕"}, "photo", "shirt.png", "image/png", content)
    assert read(*form) == (
        {"chat_id": "42", "caption": "Größe\r\nL 👕"},
        {"photo": ("shirt.png", "image/png", content)},
    )


@pytest.mark.parametrize("name", ['a"; name="x', "a\r\nX-Evil: 1\r\n\r\nb", "Größe.pdf"])
def test_a_files_name_cannot_leave_its_place(name: str) -> None:
    fields, files = read(*multipart.encode({}, "document", name, "application/pdf", b"%PDF"))
    assert fields == {}
    assert [(each, content) for each, (_, _, content) in files.items()] == [("document", b"%PDF")]


def test_an_empty_file_is_a_file() -> None:
    assert read(*multipart.encode({}, "document", "a.txt", "text/plain", b""))[1]["document"][2] == b""
