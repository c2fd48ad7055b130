from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.lib import versions


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(versions, "FOLDER", tmp_path)
    versions.running.cache_clear()
    yield tmp_path
    versions.running.cache_clear()


def test_without_git_the_number_is_all_that_is_known() -> None:
    assert versions.running() == versions.NUMBER


def test_without_git_the_file_tells_one_build_from_another(folder: Path) -> None:
    (folder / "VERSION").write_text("1a2b3c4d\n")

    assert versions.running() == f"{versions.NUMBER}+1a2b3c4d"


def test_an_empty_file_says_nothing(folder: Path) -> None:
    (folder / "VERSION").write_text("\n")

    assert versions.running() == versions.NUMBER


def test_a_checkout_says_its_commit_whatever_a_file_says(folder: Path) -> None:
    (folder / "VERSION").write_text("old\n")
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a", "--allow-empty"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)

    assert versions.running().startswith(f"{versions.NUMBER}+g")
