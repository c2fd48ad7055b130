from __future__ import annotations

from typing import Any

import pytest
from redis.connection import Connection, SSLConnection
from redis.sentinel import SentinelConnectionPool, SentinelManagedConnection, SentinelManagedSSLConnection

from app.lib import redis_servers

FILES = "ssl_ca_certs=/ca.pem&ssl_certfile=/own.pem&ssl_keyfile=/own.key"


def made(address: str, **options: Any) -> Any:
    """The connection that a client for the address would make."""
    return redis_servers.client(address, **options).connection_pool.make_connection()


def sentinels(address: str) -> list[Any]:
    """The connections by which its Sentinels would be asked."""
    pool = redis_servers.client(address, socket_timeout=0.5).connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    return [each.connection_pool.make_connection() for each in pool.sentinel_manager.sentinels]


def test_an_address_of_a_server_is_read_as_redis_py_reads_it() -> None:
    connection = made("redis://:hunter2@redis.test:6380/3?socket_timeout=9", socket_timeout=0.5)

    assert isinstance(connection, Connection)
    assert (connection.host, connection.port, connection.db, connection.password) == ("redis.test", 6380, 3, "hunter2")
    assert connection.socket_timeout == 9


def test_a_server_with_tls_may_ask_for_a_certificate() -> None:
    connection = made(f"rediss://redis.test/0?{FILES}")

    assert isinstance(connection, SSLConnection)
    assert (connection.ca_certs, connection.certfile, connection.keyfile) == ("/ca.pem", "/own.pem", "/own.key")


def test_a_server_that_sentinels_watch_has_the_options_of_the_address() -> None:
    address = "redis+sentinel://ada:hunter2@one.test,two.test:5000/bellhop/3?health_check_interval=7"

    connection = made(address, socket_timeout=0.5)
    pool = redis_servers.client(address).connection_pool

    assert type(connection) is SentinelManagedConnection
    assert (connection.db, connection.username, connection.password) == (3, "ada", "hunter2")
    assert (connection.socket_timeout, connection.health_check_interval) == (0.5, 7)
    assert pool.service_name == "bellhop"


def test_sentinels_are_asked_once_each_as_quickly_and_with_their_own_password() -> None:
    address = "redis+sentinel://:hunter2@one.test,[::1]:5000/bellhop?sentinel_password=hunter3"

    first, second = sentinels(address)

    assert [(each.host, each.port) for each in (first, second)] == [("one.test", 26379), ("::1", 5000)]
    assert (first.password, first.db, first.socket_timeout, first.retry.get_retries()) == ("hunter3", 0, 0.5, 0)


def test_with_tls_sentinels_and_servers_use_it() -> None:
    address = f"rediss+sentinel://one.test,two.test/bellhop/0?{FILES}"

    connections = [made(address), *sentinels(address)]

    assert type(connections[0]) is SentinelManagedSSLConnection
    for each in connections:
        assert isinstance(each, SSLConnection)
        assert (each.ca_certs, each.certfile, each.keyfile) == ("/ca.pem", "/own.pem", "/own.key")


@pytest.mark.parametrize("path", ["bellhop", "bellhop/", "bellhop/0"])
def test_the_database_may_be_left_out(path: str) -> None:
    redis_servers.check(f"redis+sentinel://one.test/{path}")

    assert made(f"redis+sentinel://one.test/{path}").db == 0


def test_the_message_about_a_file_names_it() -> None:
    with pytest.raises(ValueError, match=r"^there is no file /nowhere$"):
        redis_servers.check("rediss://redis.test?ssl_certfile=/nowhere")
