"""`python -m tests.upgrade`: runs all migrations on large tables that are read and written, and says who waited."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import click

from app import database, migrations
from app.sql import schema
from tests.stack.postgres import Postgres
from tests.upgrade.fillings import SHARES, STATEMENTS, fill
from tests.upgrade.probes import LONGEST_WAIT_MS, Probes

SETTINGS = {"shared_buffers": "1GB", "maintenance_work_mem": "256MB", "max_wal_size": "8GB"}
WARM_SECONDS = 10.0


@click.command
@click.option("--rows", default=1_000_000, help="Of deliveries, attempts and jobs; the other tables get fewer.")
def main(rows: int) -> None:
    """Upgrade full tables from release 0.1.0; exits with 1 if a reader or writer waited too long for a lock."""
    with TemporaryDirectory(prefix="bellhop-upgrade-", ignore_cleanup_errors=True) as directory:
        postgres = Postgres(Path(directory), settings=SETTINGS)
        postgres.start()
        database.connect_to(postgres.url)
        try:
            failures = _upgrade(postgres.url, {table: int(rows * SHARES.get(table, 1)) for table in STATEMENTS})
        finally:
            database.database.close()
            postgres.stop()
    sys.exit(1 if failures else 0)


def _upgrade(url: str, counts: dict[str, int]) -> list[str]:
    """Upgrades a database with that many rows in its tables. Returns waits that were too long."""
    with mock.patch.object(migrations, "pending", return_value=[schema.BASELINE]):
        migrations.upgrade()
    for table, count in counts.items():
        fill(table, count)
    tables = [(table, "delivery_id" if table == "attempts" else "id") for table in counts]
    click.echo("With " + ", ".join(f"{count:,} {table}" for table, count in counts.items()))
    with Probes(url, tables) as calm:
        time.sleep(WARM_SECONDS)
    began = time.monotonic()
    with Probes(url, tables) as probes:
        migrations.upgrade()
    click.echo(f"The upgrade took {time.monotonic() - began:.0f} s. The slowest statement, before and meanwhile:")
    for name, seconds in sorted(probes.longest.items()):
        click.echo(f"  {name:22} {calm.longest[name]:6.3f} s {seconds:6.3f} s")
    click.echo(f"  waits of more than {LONGEST_WAIT_MS} ms for a lock: {len(probes.failures)} {probes.failures}")
    return probes.failures


if __name__ == "__main__":
    main()
