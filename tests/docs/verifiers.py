"""The examples that verify signatures, each run by the interpreter of its language."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.lib.signatures import sign
from tests.docs.pages import blocks

SECRET, OTHER = "whsec_s3cret-ä", "whsec_other"
BODY = '{"id":"evt_1","data":{"name":"Zoë \\u0000 \'\\"$(x)`"}}\r\n'.encode()


@dataclass(frozen=True)
class Language:
    """How to turn an example into a program: the code to append, and the command that runs it.

    The program takes the secret and the header as arguments and the body on standard input, and prints true or false.
    """

    file: str
    driver: str
    command: tuple[str, ...]
    build: tuple[str, ...] = ()


LANGUAGES: Mapping[str, Language] = {
    "python": Language(
        "verify.py",
        "import sys\nprint(str(is_genuine(sys.argv[1], sys.argv[2], sys.stdin.buffer.read())).lower())\n",
        (sys.executable, "verify.py"),
    ),
    "js": Language(
        "verify.js",
        "console.log(isGenuine(process.argv[2], process.argv[3], require('node:fs').readFileSync(0)));\n",
        ("node", "verify.js"),
    ),
    "php": Language(
        "verify.php",
        "echo is_genuine($argv[1], $argv[2], file_get_contents('php://stdin')) ? 'true' : 'false';\n",
        ("php", "verify.php"),
    ),
    "ruby": Language("verify.rb", "puts genuine?(ARGV[0], ARGV[1], $stdin.binmode.read)\n", ("ruby", "verify.rb")),
    "go": Language(
        "verify.go",
        "func main() {\n\tbody, _ := io.ReadAll(os.Stdin)\n\tfmt.Println(IsGenuine(os.Args[1], os.Args[2], body))\n}\n",
        ("./verify",),
        ("go", "build", "-o", "verify", "verify.go"),
    ),
    "sh": Language("verify.sh", 'is_genuine "$1" "$2" && echo true || echo false\n', ("sh", "verify.sh")),
}

# Languages that `make nightly` installs.
INSTALLED_APART = ("php", "ruby", "go")


def each_language(*names: str) -> list[Any]:
    """The languages as parameters of a test; those that `make nightly` installs are left to it."""
    return [
        pytest.param(name, marks=pytest.mark.nightly) if name in INSTALLED_APART else pytest.param(name)
        for name in names or LANGUAGES
    ]


class Program:
    """The example of one language as a program in the directory. `path` is put in front of this process's PATH."""

    def __init__(self, name: str, directory: Path, path: str = "") -> None:
        self._language, self._directory = LANGUAGES[name], directory
        home = {"HOME": str(directory), "GO111MODULE": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
        path = os.pathsep.join(filter(None, [path, os.environ["PATH"]]))
        self._environment = {**home, "PATH": path, "LC_ALL": "C.UTF-8"}
        (example,) = [block for block in blocks("signatures.md", name) if "genuine" in block.lower()]
        if name == "go":
            example = example.replace("package webhooks", "package main").replace(
                "import (", 'import ("fmt";"io";"os"', 1
            )
        (directory / self._language.file).write_text(f"{example}\n{self._language.driver}")
        if self._language.build:
            self._run(self._language.build)

    def says(self, header: str, body: bytes = BODY, secret: str = SECRET) -> bool:
        """Whether the example accepts the header for the body."""
        said = self._run((*self._language.command, secret, header), body).strip()
        assert said in (b"true", b"false"), said
        return said == b"true"

    def _run(self, command: tuple[str, ...], body: bytes = b"") -> bytes:
        done = subprocess.run(
            command,
            cwd=self._directory,
            env=self._environment,
            input=body,
            capture_output=True,
            timeout=120,
            check=True,
        )
        assert done.stderr == b""
        return done.stdout


def signed(age_seconds: int = 0, body: bytes = BODY, secrets: tuple[str, ...] = (SECRET,)) -> str:
    return sign(secrets, int(time.time()) - age_seconds, body)


def redated(header: str) -> str:
    """An old header with the current time."""
    return f"t={int(time.time())},{header.partition(',')[2]}"


class VerifierTests:
    """The tests for every example; a subclass provides the fixture `program`."""

    def test_a_signature_is_taken(self, program: Program) -> None:
        assert program.says(signed())

    def test_a_signature_of_almost_five_minutes_is_taken(self, program: Program) -> None:
        assert program.says(signed(age_seconds=280))

    def test_an_older_signature_is_refused(self, program: Program) -> None:
        assert not program.says(signed(age_seconds=302))

    def test_an_old_signature_with_another_time_is_refused(self, program: Program) -> None:
        assert not program.says(redated(signed(age_seconds=1000)))

    def test_after_a_change_of_secret_either_of_both_is_taken(self, program: Program) -> None:
        assert program.says(signed(secrets=(OTHER, SECRET)))
        assert program.says(signed(secrets=(SECRET, OTHER)))

    def test_another_secret_is_refused(self, program: Program) -> None:
        assert not program.says(signed(secrets=(OTHER,)))
        assert not program.says(signed(secrets=(OTHER, f"{SECRET}x")))

    @pytest.mark.parametrize(
        "body", [BODY[:-1], BODY + b" ", BODY.replace(b"1", b"2"), b""], ids=["cut", "longer", "altered", "none"]
    )
    def test_another_body_is_refused(self, program: Program, body: bytes) -> None:
        assert not program.says(signed(), body)

    @pytest.mark.parametrize("body", [b"", b"\n", b"\xff\x00\xfe"], ids=["none", "line", "bytes"])
    def test_any_bytes_are_a_body(self, program: Program, body: bytes) -> None:
        assert program.says(signed(body=body), body)

    def test_what_is_unknown_in_the_header_is_passed_over(self, program: Program) -> None:
        assert program.says(f"v2=1,,x,{signed().replace(',', ', ')},v0=2,=")

    @pytest.mark.parametrize(
        "header",
        [
            *("", ",", "=", "garbage", "t", "t=", "v1", "t=,v1="),
            *("t=1", "t=x,v1=x", "t=1;v1=2", "t=-1,v1=00", "t=é,v1=☃"),
            *("t={now},v1=", "t={now},v1", "t={now},v1=00", "t={now},v1=zz", "t={now}", "t={now},t={now}"),
            *("t=99999999999999999999999,v1=00", "t=0x10,v1=00", "t=1e9,v1=00", "t= {now},v1=00", "t={now}\n,v1=00"),
        ],
    )
    def test_garbage_is_refused_without_an_error(self, program: Program, header: str) -> None:
        assert not program.says(header.format(now=int(time.time())))

    def test_half_a_signature_is_refused(self, program: Program) -> None:
        assert not program.says(signed()[:-1])
        assert not program.says(signed() + "0")

    def test_a_signature_in_capitals_is_refused(self, program: Program) -> None:
        head, _, value = signed().partition("v1=")

        assert not program.says(f"{head}v1={value.upper()}")

    def test_a_signature_without_its_time_is_refused(self, program: Program) -> None:
        assert not program.says(signed().partition(",")[2])
