"""Schemathesis against the running service: all checks, including stateful ones, with an unrestricted token."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conformance.conftest import Site
from tests.conformance.tools import BIN, HERE, run
from tests.journeys.audit import rows

# The processes that dial, which must not dial generated addresses.
SENDERS = ("deliveries", "slow-deliveries")


@pytest.fixture
def silent(site: Site) -> Iterator[Site]:
    """The service without its senders; what waits for them then is cancelled before they start again."""
    senders = [name for name in site.stack.processes.names if name.rpartition(".")[0] in SENDERS]
    for name in senders:
        site.stack.processes.stop(name)
    yield site
    rows(
        site.stack,
        "UPDATE deliveries SET status = 'cancelled', due_at = NULL, next_attempt_at = NULL"
        " WHERE status = 'pending' RETURNING id",
    )
    for name in senders:
        site.stack.processes.start(name)


@pytest.mark.parametrize(
    "chosen",
    [
        # A list, an item, an upsert, a change, a deletion and actions.
        pytest.param(("--include-tag", "contacts"), id="contacts"),
        pytest.param((), id="everything", marks=pytest.mark.nightly),
    ],
)
def test_schemathesis_finds_nothing(silent: Site, chosen: tuple[str, ...]) -> None:
    seed = os.environ.get("SEED") or "1"
    print(f"SEED={seed}")

    run(
        *(str(BIN / "schemathesis"), "--config-file", str(HERE / "schemathesis.toml")),
        *("run", f"{silent.base_url}/api/v1/openapi.json", "--seed", seed, *chosen),
        timeout_seconds=1800,
        BELLHOP=silent.base_url,
        BELLHOP_TOKEN=silent.token,
        BELLHOP_WORKSPACE=silent.workspace,
        PYTHONPATH=str(HERE),
    )
