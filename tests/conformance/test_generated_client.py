"""A client generated from the document by openapi-python-client runs the quick start."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.conftest import Site
from tests.conformance.tools import BIN, HERE, run
from tests.stack.receiver import Receiver


def test_a_generated_client_runs_the_quick_start(
    site: Site, receiver: Receiver, document: Path, tmp_path: Path
) -> None:
    made = tmp_path / "bellhop_client"
    source = ("--path", str(document), "--output-path", str(made), "--meta", "none", "--fail-on-warning")
    settings = ("--config", str(HERE / "client.yaml"))
    run(str(BIN / "openapi-python-client"), "generate", *source, *settings, cwd=tmp_path)

    run(
        *(str(BIN / "python"), str(HERE / "client.py")),
        PYTHONPATH=str(tmp_path),
        BELLHOP=site.base_url,
        TOKEN=site.token,
        RECEIVER=receiver.url("/client"),
    )
