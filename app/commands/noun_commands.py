"""The commands `list`, `show` and the verbs of every noun."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import chain, islice
from typing import Any

import click

from app.commands.command_lines import (
    Age,
    Command,
    Commands,
    as_json,
    for_people,
    print_json,
    print_list,
    print_whole,
    progress,
)
from app.commands.operating import NOUNS, Noun, Verb
from app.errors import NotFound

PAGE, PART = 500, 50  # how many rows are read at a time, and how many are changed at a time
MOST_REASONS = 20  # the most reasons that a verb prints

Pages = Callable[..., Iterator[Sequence[Any]]]


def groups() -> Iterator[click.Group]:
    """Yields a group of commands for each noun: `list`, `show`, and its actions."""
    for noun in NOUNS:
        group = Commands(noun.name, help=noun.about)
        group.add_command(_list(noun))
        group.add_command(_show(noun))
        for name, verb in noun.verbs.items():
            group.add_command(_act(noun, name, verb))
        yield group


def _filters(statuses: Sequence[str]) -> Callable[[Any], Any]:
    def decorate(command: Any) -> Any:
        for option in (
            click.option("--older-than", type=Age(), metavar="AGE", help="Only those made before: 90s, 15m, 1h or 2d."),
            click.option("--status", type=click.Choice(statuses), help="Only those with this status."),
            click.option("--workspace", "workspace_id", metavar="WORKSPACE", help="Only those of this workspace."),
        ):
            command = option(command)
        return command

    return decorate


def _list(noun: Noun) -> click.Command:
    @click.command("list", cls=Command)
    @_filters(noun.statuses)
    @click.option("--limit", type=click.IntRange(1), default=100, show_default=True, metavar="NUMBER")
    @as_json
    def list_rows(
        workspace_id: str | None, status: str | None, older_than: timedelta | None, limit: int, *, as_json: bool
    ) -> None:
        found = chain.from_iterable(noun.pages(workspace_id, [status], older_than, min(limit, PAGE)))
        print_list(noun.name, map(noun.row, islice(found, limit)), as_json=as_json)
        if for_people(as_json) and next(found, None) is not None:
            click.echo(f"There are more: give --limit above {limit}.", err=True)

    list_rows.help = f"List {noun.name}: workspace after workspace, the newest first."
    return list_rows


def _show(noun: Noun) -> click.Command:
    @click.command("show", cls=Command)
    @click.argument("identifier", metavar="ID")
    @as_json
    def show(identifier: str, *, as_json: bool) -> None:
        found = noun.find(identifier)
        print_whole({"workspace_id": found.workspace_id, **noun.represent(found)}, as_json=as_json)

    show.help = "Show one as the API does, with what contacts and members wrote."
    return show


@dataclass(slots=True)
class _Outcome:
    """The result of a verb: how many rows were chosen, done and refused, and the first reasons."""

    chosen: int = 0
    done: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)

    def refuse(self, identifier: str, why: str) -> None:
        self.refused += 1
        if self.refused <= MOST_REASONS:
            self.reasons.append(f"{identifier}: {why}")


def _act(noun: Noun, name: str, verb: Verb) -> click.Command:
    @click.command(name, cls=Command, help=verb.help)
    @click.argument("identifiers", nargs=-1, metavar="[ID]…")
    @click.option("--dry-run", is_flag=True, help="Only count them.")
    @as_json
    def act(
        identifiers: tuple[str, ...],
        *,
        dry_run: bool,
        as_json: bool,
        is_all: bool = False,
        status: str | None = None,
        **filters: Any,
    ) -> None:
        if bool(identifiers) == is_all:
            raise click.UsageError("Give identifiers, or --all." if verb.among else "Give identifiers.")
        if identifiers and (status or any(filters.values())):
            raise click.UsageError("The filters choose among --all; identifiers stand alone.")
        outcome = _Outcome()
        if is_all:
            pages = partial(noun.pages, statuses=[status] if status else verb.among, **filters)
        else:
            pages = partial(_in_parts, _named(noun, identifiers, outcome))
        if dry_run:
            outcome.chosen = _count(pages)
        else:
            _do(verb, pages, outcome)
        _report(verb, outcome, as_json=as_json)

    if verb.among:
        act.epilog = f"First look: python -m app {noun.name} {name} --all --older-than 1d --dry-run"
        act = _filters(verb.among)(act)
        act = click.option("--all", "is_all", is_flag=True, help=f"All that are {' or '.join(verb.among)}.")(act)
    return act


def _named(noun: Noun, identifiers: Sequence[str], outcome: _Outcome) -> list[Any]:
    found = []
    for identifier in dict.fromkeys(identifiers):
        try:
            found.append(noun.find(identifier))
        except NotFound as error:
            outcome.refuse(identifier, error.detail)
    return found


def _in_parts(rows: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (rows[first : first + size] for first in range(0, len(rows), size))


def _count(pages: Pages) -> int:
    return sum(len(page) for page in pages(size=PAGE))


def _do(verb: Verb, pages: Pages, outcome: _Outcome) -> None:
    """Applies the verb to one part after the other, and counts the rows in `outcome`.

    Each part has transactions of its own, so finished parts stay done however the command ends.
    """
    with progress(partial(_count, pages)) as advance:
        for part in pages(size=PART):
            refused = verb.call(part)
            for identifier, why in refused.items():
                outcome.refuse(identifier, why)
            outcome.chosen += len(part)
            outcome.done += len(part) - len(refused)
            advance(len(part))


def _report(verb: Verb, outcome: _Outcome, *, as_json: bool) -> None:
    """Prints the outcome and exits: with 1 if any row was refused."""
    for reason in outcome.reasons:
        click.echo(f"bellhop: {reason}", err=True)
    if more := outcome.refused - len(outcome.reasons):
        click.echo(f"bellhop: and {more:,} more", err=True)
    counted = {"chosen": outcome.chosen, verb.done: outcome.done, "refused": outcome.refused}
    if for_people(as_json):
        click.echo(", ".join(f"{number:,} {what}" for what, number in counted.items()))
    else:
        print_json(counted)
    sys.exit(1 if outcome.refused else 0)
