"""`python -m tests.upgrade`: runs all migrations on large tables that are read and written, and says who waited."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import click

from app import database, migrations, partitions
from app.sql import schema
from tests.stack.postgres import Postgres
from tests.upgrade.fillings import FIRST, SECOND, Filling
from tests.upgrade.probes import LONGEST_WAIT_MS, Probes

SETTINGS = {"shared_buffers": "1GB", "maintenance_work_mem": "256MB", "max_wal_size": "8GB"}
WARM_SECONDS = 10.0
LAST = "this version"  # which comes behind all numbers


@click.command
@click.option("--rows", default=1_000_000, help="Of deliveries, attempts and jobs; the other tables get fewer.")
def main(rows: int) -> None:
    """Upgrade in two stages, each on full tables; exits with 1 if a reader or writer waited too long for a lock."""
    with TemporaryDirectory(prefix="bellhop-upgrade-", ignore_cleanup_errors=True) as directory:
        postgres = Postgres(Path(directory), settings=SETTINGS)
        postgres.start()
        database.connect_to(postgres.url)
        try:
            failures = _stage(postgres.url, [FIRST], rows, SECOND.before)
            failures += _stage(postgres.url, [FIRST, SECOND], rows, LAST)
        finally:
            database.database.close()
            postgres.stop()
    sys.exit(1 if failures else 0)


def _stage(url: str, fillings: Sequence[Filling], rows: int, until: str) -> list[str]:
    """Upgrades from before the last filling, the only one that is not there yet. Returns waits that were too long."""
    _upgrade_before(fillings[-1].before)
    fillings[-1].fill(rows)
    filled = [(table, each.share.get(table, 1)) for each in fillings for table in each.statements]
    tables = [(table, "delivery_id" if table == "attempts" else "id") for table, _ in filled]
    counts = ", ".join(f"{int(rows * share):,} {table}" for table, share in filled)
    click.echo(f"From before {fillings[-1].before} to {until}, with {counts}")
    with Probes(url, tables) as calm:
        time.sleep(WARM_SECONDS)
    began = time.monotonic()
    with Probes(url, tables) as probes:
        _upgrade_before(until)
    click.echo(f"The upgrade took {time.monotonic() - began:.0f} s. The slowest statement, before and meanwhile:")
    for name, seconds in sorted(probes.longest.items()):
        click.echo(f"  {name:22} {calm.longest[name]:6.3f} s {seconds:6.3f} s")
    click.echo(f"  waits of more than {LONGEST_WAIT_MS} ms for a lock: {len(probes.failures)} {probes.failures}")
    return probes.failures


def _upgrade_before(name: str) -> None:
    """Makes the schema of an earlier version, without the migration of that name and those behind it."""
    names = [each for each in schema.pending(database.rows) if each < name]
    tables = [each for each in partitions.TABLES if name > "0015" or each.table != "run_steps"]
    with mock.patch.object(migrations, "pending", return_value=names), mock.patch.object(partitions, "TABLES", tables):
        migrations.upgrade()


if __name__ == "__main__":
    main()
