"""The `python -m app arrivals` commands, for arrivals that could not be processed."""

from __future__ import annotations

import click

from app.commands.command_lines import Commands, as_json, print_json, print_list
from app.domain.channels import arrivals
from app.models.arrivals import Arrival


@click.group("arrivals", cls=Commands)
def arrivals_group() -> None:
    """Arrivals over channels that could not be processed and were given up."""


@arrivals_group.command("list")
@click.option("--after", metavar="ARRIVAL_ID", help="Only those after this one.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, metavar="NUMBER")
@as_json
def list_failed(after: str | None, limit: int, *, as_json: bool) -> None:
    """List the arrivals that were given up, oldest first, without their content."""
    print_list("arrivals", map(arrivals.represent, Arrival.failed(after, limit)), as_json=as_json)


@arrivals_group.command("retry")
@click.argument("arrival_id", metavar="[ARRIVAL_ID]", required=False)
@click.option("--all", "is_all", is_flag=True, help="Retry everything that was given up.")
def retry(arrival_id: str | None, *, is_all: bool) -> None:
    """Queue one given-up arrival again, or all of them with --all. Print how many as JSON."""
    if (arrival_id is None) != is_all:
        raise click.UsageError("Give either an identifier (arr_…) or --all.")
    print_json({"retried": arrivals.retry(arrival_id)})
