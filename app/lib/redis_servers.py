"""Redis clients for the addresses in settings: of a server, or of the Sentinels that watch it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.connection import SSLConnection, parse_url
from redis.sentinel import Sentinel

SCHEMES = ("redis", "rediss", "redis+sentinel", "rediss+sentinel")
SENTINEL_PORT = 26379

_ADDRESS = re.compile(r"(rediss?)(\+sentinel)?://([^/?]*@)?([^/?]*)([^?]*)(.*)")


def check(address: str) -> None:
    """Raises ValueError, with no password in its text, if no client can be made for the address."""
    _, sentinel, _, hosts, path, _ = _parts(address)
    _hosts_and_ports(hosts.split(",") if sentinel else [hosts])
    if sentinel and not all(hosts.split(",")):
        raise ValueError("it must name the hosts of Sentinels, separated by commas")
    if sentinel and not re.fullmatch("/[^/]+(/[0-9]*)?", path):
        raise ValueError(
            "its path must be the name that the Sentinels know, and perhaps a database, such as /bellhop/0"
        )
    if not sentinel and not re.fullmatch("/?[0-9]*", path):
        raise ValueError("its path must be the number of a database, such as /0")
    try:
        connection = client(address).connection_pool.make_connection()  # does not connect
    except Exception as error:
        raise ValueError("its options (behind the question mark) cannot be read") from error
    if isinstance(connection, SSLConnection):
        for file in (connection.ca_certs, connection.certfile, connection.keyfile):
            if file and not Path(file).is_file():
                raise ValueError(f"there is no file {file}")


def client(address: str, **options: Any) -> redis.Redis:
    """Returns a client, which connects when it is used. Options in the address override `options`.

    `redis+sentinel://user:password@host:26379,host:26379/name/0?…` means the server that the Sentinels call `name`. The
    client asks them for each new connection. With `rediss+sentinel://`, all connections use TLS.
    """
    scheme, sentinel, user, hosts, path, query = _parts(address)
    if not sentinel:
        return redis.Redis.from_url(address, **options)
    _, name, *database = path.split("/")
    options |= parse_url(f"{scheme}://{user or ''}server/{''.join(database)}{query}")
    del options["host"]
    options["ssl"] = options.pop("connection_class", None) is SSLConnection
    asking = {key: value for key, value in options.items() if key.startswith(("socket_", "ssl"))}
    asking |= {key: options.pop(f"sentinel_{key}", None) for key in ("username", "password")}
    # Asks each Sentinel only once, because the next one may know.
    sentinels = Sentinel(_hosts_and_ports(hosts.split(",")), sentinel_kwargs=asking | {"retry": None})
    found: redis.Redis = sentinels.master_for(name, **options)
    return found


def _parts(address: str) -> Sequence[str]:
    found = _ADDRESS.fullmatch(address)
    if not found:
        raise ValueError(f"it must begin with {' or '.join(f'{scheme}://' for scheme in SCHEMES)}")
    return found.groups()


def _hosts_and_ports(hosts: Sequence[str]) -> list[tuple[str, int]]:
    try:
        parts = [urlsplit(f"//{host}") for host in hosts]
        return [(each.hostname or "", each.port or SENTINEL_PORT) for each in parts]
    except ValueError as error:
        raise ValueError("its port must be a number from 0 to 65535") from error
