"""Formats of values on pages: numbers, times, texts and JSON."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from typing import Any

import orjson
from flask import Flask
from markupsafe import Markup

from app.lib import graphemes
from app.lib.json import timestamp

MOST_COUNTED = 10_000
LONGEST_JSON = 8_000
NOTHING = "\N{EN DASH}"


def install(pages: Flask) -> None:
    """Gives templates this module's filters, and `new_once()`, a key that makes a form idempotent."""
    pages.jinja_env.trim_blocks = pages.jinja_env.lstrip_blocks = True
    numbers, times = (number, short, capped, duration, size), (short_time, day, field_time)
    for filter_ in (*numbers, *times, linked, truncate, words, parted, indented):
        pages.jinja_env.filters[filter_.__name__] = filter_
    pages.jinja_env.filters["exact_time"] = timestamp  # scripts and tooltips use this format
    pages.jinja_env.globals["new_once"] = lambda: str(uuid.uuid4())


# Addresses in texts, without punctuation after them. messages.js has the same pattern.
_ADDRESS = re.compile(r"(https?://[!-~]*[a-z0-9/&=#_~$%*+@-])", re.IGNORECASE)
_LINK = Markup('<a href="{0}" target="_blank" rel="noopener noreferrer nofollow">{0}</a>')


def linked(text: str) -> Markup:
    """Escapes a text and turns its web addresses into links."""
    parts = _ADDRESS.split(text)
    return Markup().join(_LINK.format(part) if at % 2 else part for at, part in enumerate(parts))


def truncate(text: str, length: int, in_words: bool = False) -> str:
    """Like Jinja's `truncate`, but never splits a grapheme. `in_words`: may end within a word."""
    if len(text) <= length + 5:
        return text
    kept = graphemes.cut(text, length - 3)
    return (kept if in_words else kept.rsplit(" ", 1)[0]) + "..."


def number(value: float | None) -> str:
    """Writes 1234567 as 1,234,567; None as an en dash."""
    return NOTHING if value is None else f"{value:,}"


def short(value: int) -> str:
    """Writes a count briefly: exact up to 99,999, then as 123k or 1.2M."""
    if value < 100_000:
        return number(value)
    return f"{value // 1_000}k" if value < 1_000_000 else f"{value / 1_000_000:.1f}M"


def capped(value: int, most: int | None = None) -> str:
    """Writes a count; above `most`, or MOST_COUNTED, as "10,000+", because counting stopped there."""
    most = most or MOST_COUNTED
    return f"{most:,}+" if value > most else f"{value:,}"


def duration(milliseconds: float | None) -> str:
    """Writes a duration in a suitable unit: 850 ms, 2.4 s, 3 min, 5 h, 2 d."""
    if milliseconds is None:
        return NOTHING
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    length, unit = (60, "min") if seconds < 3600 else (3600, "h") if seconds < 86400 else (86400, "d")
    return f"{seconds / length:.0f} {unit}"


def short_time(value: datetime) -> str:
    """Writes a time in UTC. The script replaces it with the reader's local time."""
    return value.astimezone(UTC).strftime("%d %b %Y, %H:%M:%S UTC")


def day(value: datetime) -> str:
    """Writes a day in UTC. The script replaces it with the day in the reader's time zone."""
    return value.astimezone(UTC).strftime("%d %b %Y")


def field_time(value: datetime | None) -> str:
    """Writes a time in UTC for a datetime-local input, which takes no zone; "" for None."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") if value else ""


def size(value: int) -> str:
    """Writes a size in bytes: 512 B, 12 kB, 3.4 MB."""
    if value < 1000:
        return f"{value} B"
    return f"{value / 1000:.0f} kB" if value < 1_000_000 else f"{value / 1_000_000:.1f} MB"


def words(value: Any) -> str:
    """Writes a code as words: `private_address` as "private address"."""
    return str(value).replace("_", " ")


def parted(address: str) -> tuple[str, str, str]:
    """Splits an endpoint's address into host, path and last segment, which distinguishes it best.

    Without a path, the host is the last segment, and the others are "".
    """
    host, slash, path = address.removeprefix("https://").partition("/")
    folders, last_slash, end = (slash + path).rstrip("/").rpartition("/")
    return (host, folders, last_slash + end) if end else ("", "", host)


def indented(value: Any) -> str:
    """Indents any JSON value, and truncates it at LONGEST_JSON characters."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATETIME).decode()
    return text if len(text) <= LONGEST_JSON else f"{text[:LONGEST_JSON]} …"
