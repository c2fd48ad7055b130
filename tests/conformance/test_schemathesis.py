"""Schemathesis against the running service: all of its checks, stateful ones included, with an unrestricted token."""

from __future__ import annotations

import os

from tests.conformance.conftest import Site
from tests.conformance.tools import BIN, HERE, run

# The processes that dial: the addresses that are made up for endpoints are nobody's to be dialled.
SENDERS = ("deliveries", "slow-deliveries")


def test_schemathesis_finds_nothing(site: Site) -> None:
    for name in site.stack.processes.names:
        if name.rpartition(".")[0] in SENDERS:
            site.stack.processes.stop(name)
    seed = os.environ.get("SEED") or "1"
    print(f"SEED={seed}")

    run(
        *(str(BIN / "schemathesis"), "--config-file", str(HERE / "schemathesis.toml")),
        *("run", f"{site.base_url}/api/v1/openapi.json", "--seed", seed),
        timeout_seconds=1800,
        BELLHOP=site.base_url,
        BELLHOP_TOKEN=site.token,
        BELLHOP_WORKSPACE=site.workspace,
        PYTHONPATH=str(HERE),
    )
