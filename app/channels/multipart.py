"""Bodies of `multipart/form-data`, in which files are uploaded."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from app.channels.base import File

_ESCAPED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


def encode(fields: Mapping[str, str], files: Mapping[str, File]) -> tuple[str, bytes]:
    """The Content-Type and the body of a form with these fields and files (RFC 7578)."""
    boundary = secrets.token_hex(16)
    parts = [(f'name="{name}"', value.encode()) for name, value in fields.items()]
    for name, file in files.items():
        quoted = file.name.translate(_ESCAPED)
        parts.append((f'name="{name}"; filename="{quoted}"\r\nContent-Type: {file.content_type}', file.content))
    body = b"".join(
        b"--%b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (boundary.encode(), head.encode(), content)
        for head, content in parts
    )
    return f"multipart/form-data; boundary={boundary}", body + b"--%b--\r\n" % boundary.encode()
