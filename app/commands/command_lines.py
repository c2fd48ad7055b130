"""Shared parts of the commands: groups that report expected errors, types of arguments, output."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import click
import psycopg2

from app import database, logs
from app.config import settings
from app.database import DatabaseAway, DatabaseRefuses
from app.errors import BellhopError, Invalid, first_line
from app.lib import json, normalization

MEASURED = 100  # the number of rows, from the first, that decide the widths of a table's columns


class Command(click.Command):
    """A command that reads the settings only when it runs: help and usage errors need no settings."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command, connected to the database. Raises SettingsError."""
        settings()
        logs.configure("command", least=logging.WARNING if sys.stderr.isatty() else logging.INFO)
        database.connect()
        return super().invoke(ctx)


class Commands(click.Group):
    """A group of commands. Prints an expected error in a line, and exits with 1."""

    command_class = Command
    group_class = type  # tells click to create subgroups of this class, too

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command. Prints an expected error and exits with 1."""
        try:
            return super().invoke(ctx)
        except Invalid as error:
            sys.exit("\n".join(f"bellhop: {fault.pointer.lstrip('/')}: {fault.detail}" for fault in error.faults))
        except BellhopError as error:
            sys.exit(f"bellhop: {error.detail}")
        except UnicodeError:
            sys.exit("bellhop: the input is not UTF-8 text")
        except (*DatabaseAway, psycopg2.OperationalError) as error:  # migrations bypass peewee
            sys.exit(f"bellhop: the database does not respond: {first_line(error)}")
        except DatabaseRefuses as error:
            sys.exit(f"bellhop: the database refuses: {first_line(error)}; see python -m app check")


def name(_context: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Validates an argument that is a name. Raises click.BadParameter."""
    try:
        return normalization.name(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


class Age(click.ParamType[timedelta]):
    """A length of time such as 90s, 15m, 1h or 2d."""

    name = "age"
    _UNITS: Mapping[str, str] = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Returns the length of time. Ends the command with a usage error if `value` is not one."""
        found = re.fullmatch(r"(\d{1,6})([smhd])", value, re.ASCII)
        if found is None:
            self.fail(f"'{value}' is no age such as 90s, 15m, 1h or 2d.", param, ctx)
        return timedelta(**{self._UNITS[found[2]]: int(found[1])})


class Time(click.ParamType[datetime]):
    """A time in ISO 8601; in UTC if it names no zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Returns the time in UTC. Ends the command with a usage error if `value` is not a time."""
        try:
            at = datetime.fromisoformat(value)
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"'{value}' is no time such as 2026-11-21T10:00Z.", param, ctx)


def password() -> str:
    """Asks for a password twice; if standard input is no terminal, reads the first line of it."""
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\r\n")


as_json = click.option("--json", "as_json", is_flag=True, help="JSON on a terminal, too; elsewhere it always is.")


def for_people(as_json: bool) -> bool:
    """Whether people read the output: it goes to a terminal, and `--json` was not given."""
    return sys.stdout.isatty() and not as_json


def print_json(document: object) -> None:
    """Prints the document as JSON on one line."""
    click.echo(json.dumps(document).decode())


def print_list(name: str, rows: Iterable[Mapping[str, Any]], *, as_json: bool) -> None:
    """Prints the rows as they come: as a table for people, else as JSON.

    The JSON document is `{name: […]}`, with a row on each line.
    """
    if for_people(as_json):
        _print_table(iter(rows))
        return
    click.echo(json.dumps({name: []})[:-2], nl=False)
    for number, row in enumerate(rows):
        click.echo(",\n" if number else "\n", nl=False)
        click.echo(json.dumps(row), nl=False)
    click.echo("]}")


def print_whole(document: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints the document: for people one member on each line, else as JSON."""
    if not for_people(as_json):
        print_json(document)
        return
    width = max(map(len, document))
    for name, value in document.items():
        click.echo(f"{name:{width}}  {_shown(value)}")


@contextmanager
def progress(count: Callable[[], int]) -> Iterator[Callable[[int], object]]:
    """Yields a function to call with the number of items just done. On a terminal, it moves a bar.

    `count` returns the length of the bar. It is called only on a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=count(), file=sys.stderr, show_pos=True) as bar:
        yield bar.update


def _print_table(rows: Iterator[Mapping[str, Any]]) -> None:
    first = list(islice(rows, MEASURED))
    if not first:
        click.echo("There are none.")
        return
    titles = [name.upper() for name in first[0]]
    measured = [titles, *([_shown(value) for value in row.values()] for row in first)]
    widths = [max(map(len, column)) for column in zip(*measured, strict=True)]
    for cells in measured:
        _print_cells(cells, widths)
    for row in rows:
        _print_cells([_shown(value) for value in row.values()], widths)


def _print_cells(cells: Sequence[str], widths: Sequence[int]) -> None:
    click.echo("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())


def _shown(value: Any) -> str:
    """Formats the value in a line. Replaces unprintable text, which could control the terminal."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    text = json.dumps(value).decode() if isinstance(value, dict | list) else str(value)
    return "".join(character if character.isprintable() else "?" for character in text)
