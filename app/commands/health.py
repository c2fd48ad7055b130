"""`python -m app health`: asks a process on this machine whether it is well.

It asks no other server and imports little, because probes run it often.
"""

from __future__ import annotations

import re
import sys
from http.client import HTTPConnection, HTTPException

import click

from app.config import settings, settings_or_exit
from app.metrics import MOST_PORTS

TIMEOUT_SECONDS = 5.0


class Unwell(Exception):
    """The process is not well. The message says why in one line."""


@click.command
@click.argument("process_type", metavar="[TYPE]", required=False)
def health(process_type: str | None) -> None:
    """Ask a process on this machine whether it is well; exits with 1 if not.

    Without a type it asks the one on METRICS_PORT: in a container, the only one.
    """
    settings_or_exit()
    try:
        click.echo(f"ok     {look(process_type)}")
    except Unwell as error:
        click.echo(f"WRONG  {error}")
        sys.exit(1)


def look(process_type: str | None) -> str:
    """Returns a line that names the process that answers and its port. Raises Unwell.

    A process answers once it has started, and ends by itself if a thread dies or a loop hangs. It also answers while
    PostgreSQL or Redis is away, because restarting it would not help.
    """
    configured = settings()
    process_type = process_type or _types_at(_first_port())[0]
    pages = {"web": configured.port, "realtime": configured.realtime_port}
    if process_type not in pages:
        return f"{process_type}: answers on port {_port_of(process_type)}"
    _get(configured.listen_host, pages[process_type], "/healthz")
    return f"{process_type}: answers on port {pages[process_type]}"


def _port_of(process_type: str) -> int:
    ports, strange = range(first := _first_port(), first + MOST_PORTS), ""
    for port in ports:
        try:
            if process_type in _types_at(port):
                return port
        except Unwell as error:
            if not isinstance(error.__cause__, ConnectionRefusedError):
                strange += f"; {error}"
    raise Unwell(f"no {process_type} answers on ports {ports[0]} to {ports[-1]} of {settings().metrics_host}{strange}")


def _first_port() -> int:
    if port := settings().metrics_port:
        return port
    raise Unwell("METRICS_PORT is 0: only web and realtime can be asked")


def _types_at(port: int) -> list[str]:
    """Returns the types of the process that serves its metrics on that port. Raises Unwell."""
    figures = _get(settings().metrics_host, port, "/metrics")
    if not (named := re.findall(r'^bellhop_processes\{type="([^"]+)"\} [1-9]', figures, re.MULTILINE)):
        raise Unwell(f"{settings().metrics_host}:{port} is no process of Bellhop")
    return [process_type for name in named for process_type in name.split("+")]


def _get(host: str, port: int, path: str) -> str:
    connection = HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
    except (OSError, HTTPException) as error:
        raise Unwell(f"{host}:{port} does not answer: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise Unwell(f"{host}:{port}{path} answers {answer.status}")
    return body
