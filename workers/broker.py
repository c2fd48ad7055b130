"""Sets up a worker process: logs, database, and a broker whose consumers wait for bells."""

from __future__ import annotations

import sys
from typing import Any

import dramatiq
from dramatiq import Broker

from app import database, logs
from app.bells.brokers import QuorumBroker
from app.config import settings_or_exit
from app.lib import redis_servers
from app.sql import schema
from workers.middleware.hearing import Hearing
from workers.middleware.registration import Registration, process_name
from workers.middleware.watchdog import Watchdog
from workers.redis_broker import BlockingBroker


def set_up() -> Broker:
    """Sets up logs and the database, and returns the process's broker. Call it once.

    Waits until no migration is pending. If a setting is wrong, prints its name and exits.
    """
    configured = settings_or_exit()
    # Not sys.stderr: in a worker, that is a pipe to Dramatiq's master, which closes before the process ends.
    logs.configure(process_name(sys.argv), gather=True, stream=sys.__stderr__)
    schema.wait()
    database.connect()
    middleware = [Watchdog(), Registration(), Hearing()]
    if configured.broker_url.startswith("amqp"):
        return QuorumBroker(url=configured.broker_url, middleware=middleware)
    # Consumers wait inside Redis for up to a second, so an answer that takes five seconds will not come. No retries: a
    # fetch whose answer was lost may have run, and a second fetch would lose the messages of the first.
    client: Any = redis_servers.client(configured.broker_url, socket_timeout=5, socket_connect_timeout=2, retry=None)
    return BlockingBroker(client=client, middleware=middleware)


broker = set_up()
dramatiq.set_broker(broker)
