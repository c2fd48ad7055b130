"""Shared by the commands: groups that turn expected errors into one line, names, and output."""

from __future__ import annotations

import sys
from typing import Any

import click
import psycopg2

from app import database, logs
from app.config import settings
from app.database import DatabaseAway, DatabaseRefuses
from app.errors import BellhopError, Invalid, first_line
from app.lib import json, normalization


class Command(click.Command):
    """A command that reads the settings only when it runs: help and usage errors need none."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command, connected to the database. Raises SettingsError."""
        settings()
        logs.configure("command")
        database.connect()
        return super().invoke(ctx)


class Commands(click.Group):
    """A group of commands that prints expected errors as one line and exits with 1."""

    command_class = Command
    group_class = type  # click: subgroups are of this class, too

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command in the group, with its expected errors as exits."""
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
    """The name that an argument gives. Raises click.BadParameter."""
    try:
        return normalization.name(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def print_json(document: object) -> None:
    """Prints the document as JSON."""
    click.echo(json.dumps(document).decode())
