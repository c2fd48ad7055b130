"""TypeScript clients generated from the document: programs that use them compile in strict mode without a cast."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conformance.conftest import Site
from tests.conformance.tools import HERE, TOOLS, environment, run

PROGRAMS = HERE / "typescript"


@pytest.fixture
def project(document: Path, tmp_path: Path) -> Path:
    """A directory with the programs and the clients that they use."""
    directory = tmp_path / "project"
    shutil.copytree(PROGRAMS, directory)
    (directory / "node_modules").symlink_to(TOOLS / "node_modules")
    run("openapi-typescript", str(document), "--output", "schema.ts", cwd=directory)
    run("openapi-ts", "--input", str(document), "--output", "hey", "--silent", cwd=directory)
    return directory


def test_the_programs_compile_in_strict_mode_and_do_what_they_say(site: Site, project: Path) -> None:
    run("tsc", "--project", ".", cwd=project)

    settings = {"BELLHOP": site.base_url, "TOKEN": site.token}
    done = subprocess.run(
        ["node", "fetch.ts"], cwd=project, env=environment(settings), capture_output=True, text=True, timeout=120
    )

    assert done.returncode == 0, done.stderr
    eve, ada, refused, listed, *reactions = done.stdout.splitlines()
    assert set(ada.split()) == {"ada@example.com", "vip", "beta=true", "orders=3", "plan=gold"}
    assert eve.startswith("contacts.upsert ")
    assert refused.startswith("Validation failed /email: ")
    assert listed.endswith(" true")
    assert any(line.startswith("contact.created Welcome, Ada, since 20") for line in reactions)


@pytest.mark.parametrize("program", sorted(PROGRAMS.glob("*.ts")), ids=lambda path: path.name)
def test_a_program_has_no_cast(program: Path) -> None:
    assert re.findall(r"\bas\b|<any>|: any|@ts-|!\.|!\[", program.read_text()) == []
