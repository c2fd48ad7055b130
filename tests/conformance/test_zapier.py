"""A Zapier app, checked by Zapier's own validator and run by its tester against the service."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.conformance.conftest import Site
from tests.conformance.tools import HERE, TOOLS, environment
from tests.docs.pages import blocks
from tests.stack.receiver import Receiver
from tests.stack.signatures import is_genuine


def test_an_app_connects_subscribes_upserts_searches_and_unsubscribes(
    site: Site, receiver: Receiver, tmp_path: Path
) -> None:
    app = tmp_path / "app"
    shutil.copytree(HERE / "zapier", app)
    (app / "node_modules").symlink_to(TOOLS / "node_modules")
    settings = {"BELLHOP": site.base_url, "TOKEN": site.token, "RECEIVER": receiver.url("/zapier")}

    done = subprocess.run(
        ["node", "story.js"],
        cwd=app,
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    # Zapier's own lines come first.
    told = json.loads(done.stdout.splitlines()[-1])
    assert receiver.wait_for(lambda receiver: len(receiver.received) == 1)
    (received,) = receiver.received
    assert told["samples"] == [json.loads(received.body)]
    assert is_genuine(told["secret"], received.signature, received.body)


def test_the_app_makes_its_keys_as_the_page_shows() -> None:
    (shown,) = blocks("connectors.md", "js")
    body = shown[shown.index("  const hex") : shown.rindex("}")]

    assert body in (HERE / "zapier" / "app.js").read_text()
