"""Encodes forms with a file (RFC 7578)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

# Escapes names as browsers do (HTML, "multipart/form-data encoding algorithm").
_ESCAPED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


def encode(
    fields: Mapping[str, str], field: str, filename: str, content_type: str, content: bytes
) -> tuple[str, bytes]:
    """Returns the Content-Type and the body of a form with these fields and, at the end, a file."""
    boundary = secrets.token_hex(16)  # random, so that no file contains it
    parts = [f"{_head(boundary, name)}\r\n{value}\r\n".encode() for name, value in fields.items()]
    kind = content_type.translate(_ESCAPED)
    head = f'{_head(boundary, field).rstrip()}; filename="{filename.translate(_ESCAPED)}"\r\nContent-Type: {kind}\r\n'
    parts += [f"{head}\r\n".encode(), content, f"\r\n--{boundary}--\r\n".encode()]
    return f"multipart/form-data; boundary={boundary}", b"".join(parts)


def _head(boundary: str, name: str) -> str:
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{name.translate(_ESCAPED)}"\r\n'
