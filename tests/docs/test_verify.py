"""The verifier to copy, and the page that shows it; `make conformance` covers the other languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.lib.signatures import sign
from tests.docs.pages import PAGES, blocks
from tests.docs.verifiers import Program, VerifierTests


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program("python", tmp_path_factory.mktemp("python"))


class TestPython(VerifierTests):
    pass


def test_the_page_shows_the_file_to_copy() -> None:
    assert blocks("signatures.md", "python") == [(PAGES / "verify.py").read_text()]


def test_the_header_on_the_page_is_that_of_the_body_and_the_secret_on_it() -> None:
    page = (PAGES / "signatures.md").read_text()
    [(header, timestamp)] = re.findall(r"^X-Service-Signature: (t=(\d+),.+)$", page, re.MULTILINE)
    [secret] = re.findall(r"secret `(whsec_\w{20,})`", page)
    (body,) = blocks("signatures.md", "json")

    assert sign([secret], int(timestamp), body.rstrip("\n").encode()) == header


def test_the_helper_takes_no_header_for_a_wrong_one(tmp_path: Path) -> None:
    names: dict[str, object] = {}
    exec((PAGES / "verify.py").read_text(), names)

    assert names["is_genuine"]("whsec_x", None, b"") is False  # type: ignore[operator]
