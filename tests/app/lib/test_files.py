"""Files: there completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.lib import files


def interrupted() -> Iterator[bytes]:
    yield b"half"
    raise ConnectionError


def test_a_file_is_written_in_a_directory_of_its_own(tmp_path: Path) -> None:
    length = files.write(tmp_path / "a" / "b", [b"on", b"e"], 3)

    assert (length, (tmp_path / "a" / "b").read_bytes()) == (3, b"one")


def test_others_on_the_machine_cannot_read_a_file_or_the_directories_made_for_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        files.write(tmp_path / "media" / "a" / "b", [b"one"], 3)
    finally:
        os.umask(before)

    made = ("media", "media/a", "media/a/b")
    assert [oct((tmp_path / each).stat().st_mode & 0o777) for each in made] == ["0o750", "0o750", "0o640"]


def test_a_file_is_replaced(tmp_path: Path) -> None:
    files.write(tmp_path / "b", [b"one"], 3)
    files.write(tmp_path / "b", [b"two"], 3)

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("b", b"two")]


def test_nothing_stays_of_a_file_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(files.TooLong):
        files.write(tmp_path / "b", [b"one", b"two"], 5)

    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_of_a_file_that_breaks_off(tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        files.write(tmp_path / "b", interrupted(), 5)

    assert list(tmp_path.iterdir()) == []
