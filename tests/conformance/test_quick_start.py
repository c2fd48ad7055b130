"""Runs the commands and programs from the pages for integrators."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.conformance.conftest import Site
from tests.conformance.tools import ROOT, environment
from tests.docs.pages import blocks
from tests.stack.kept import Kept
from tests.stack.receiver import Receiver
from tests.stack.signatures import is_genuine
from tests.stack.stack import Stack


@pytest.fixture
def receiver(stack: Stack, tmp_path: Path) -> Iterator[Receiver]:
    """One that keeps what it receives where `make up` does."""
    kept = Kept(tmp_path / ".data" / "received")
    with Receiver(stack.certificates.ca_file.parent, on_receive=kept.put) as receiver:
        yield receiver


def run_as_shown(site: Site, receiver: Receiver, directory: Path) -> None:
    (directory / "docs").symlink_to(ROOT / "docs")
    script = "".join(["set -eu\n", *blocks("quick-start.md", "sh")])
    settings = {"BELLHOP": site.base_url, "TOKEN": site.token, "RECEIVER": receiver.url("/quick-start")}
    subprocess.run(["sh", "-c", script], cwd=directory, env=environment(settings), timeout=120, check=True)


def test_the_quick_start_does_what_it_says(site: Site, receiver: Receiver, tmp_path: Path) -> None:
    run_as_shown(site, receiver, tmp_path)

    def read(name: str) -> Any:
        return json.loads((tmp_path / name).read_text())

    assert read("me.json")["data"]["workspace"]["id"] == site.workspace
    ada = read("contact.json")["data"]
    head, _, body = (tmp_path / "again.txt").read_text().partition("\n\n")
    assert "idempotent-replayed: true" in head.lower()
    assert json.loads(body)["data"]["id"] == ada["id"]
    job = read("job.json")["data"]
    assert (job["status"], job["kind"]) == ("succeeded", "contacts.upsert")
    pages = [read("page1.json"), read("page2.json")]
    assert [[contact["id"] for contact in page["data"]] for page in pages] == [[job["resource"]["id"]], [ada["id"]]]
    assert [page["meta"]["hasMore"] for page in pages] == [True, False]
    secret, deliveries = read("endpoint.json")["secret"], read("deliveries.json")["data"]
    assert {delivery["kind"] for delivery in deliveries} == {"contact.created", "tag.added"}
    assert read("delivery.json")["data"]["id"] == deliveries[0]["id"]
    assert (tmp_path / "verified.txt").read_text() == "True\n"
    assert receiver.wait_for(lambda receiver: len(receiver.received) == 3)
    assert all(is_genuine(secret, received.signature, received.body) for received in receiver.received)


def test_the_program_that_tries_again_makes_its_contact(site: Site) -> None:
    (program,) = blocks("retries.md", "python")
    names: dict[str, Any] = {}
    exec(program, names)

    made = names["upsert_contact"](api_of(site), site.token, {"email": "ada@example.com"})

    assert made["email"] == "ada@example.com"


def test_the_program_that_reads_a_list_reads_all_of_it(site: Site) -> None:
    (again,), (reader,) = blocks("retries.md", "python"), blocks("pagination.md", "python")
    names: dict[str, Any] = {}
    exec(again, names)
    exec(reader, names)
    made = [
        names["upsert_contact"](api_of(site), site.token, {"external_id": str(number), "tags": ["even"][number % 2 :]})[
            "id"
        ]
        for number in range(101)
    ]

    assert [contact["id"] for contact in names["contacts"](api_of(site), site.token)] == made[::-1]
    assert [contact["id"] for contact in names["contacts"](api_of(site), site.token, tag="even")] == made[::-2]


def test_the_key_of_a_run_is_a_uuid_v4_and_stays_the_same() -> None:
    (program,) = blocks("connectors.md", "js")
    lines = [f"console.log(keyOf({run!r}));" for run in ("run 1", "run 1", "run 2")]

    done = subprocess.run(
        ["node", "-e", "\n".join([program, *lines])], env=environment({}), capture_output=True, text=True, check=True
    )

    first, again, second = done.stdout.split()
    assert first == again != second
    assert (UUID(first).version, str(UUID(first))) == (4, first)


def api_of(site: Site) -> str:
    return f"{site.base_url}/api/v1/workspaces/{site.workspace}"
