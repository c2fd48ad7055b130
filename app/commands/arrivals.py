"""The commands `python -m app arrivals`: arrivals over channels that could not be processed."""

from __future__ import annotations

import click

from app.commands.command_lines import Commands, print_json
from app.domain.channels import arrivals
from app.models.arrivals import Arrival


@click.group("arrivals", cls=Commands)
def arrivals_group() -> None:
    """Arrivals over channels that were given up."""


@arrivals_group.command("list")
@click.option("--after", metavar="ARRIVAL_ID", help="Only those after this one.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, metavar="NUMBER")
def list_failed(after: str | None, limit: int) -> None:
    """Print what was given up as JSON, oldest first, without what it says."""
    print_json({"arrivals": [arrivals.represent(each) for each in Arrival.failed(after, limit)]})


@arrivals_group.command("retry")
@click.argument("arrival_id", metavar="[ARRIVAL_ID]", required=False)
@click.option("--all", "is_all", is_flag=True, help="Retry everything that was given up.")
def retry(arrival_id: str | None, *, is_all: bool) -> None:
    """Process an arrival again, or all; prints how many as JSON."""
    if (arrival_id is None) != is_all:
        raise click.UsageError("Give either an identifier (arr_…) or --all.")
    print_json({"retried": arrivals.retry(arrival_id)})
