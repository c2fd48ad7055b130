"""Webhooks with Dramatiq, one message each, and urllib3. Run as a program, it feeds the workers."""

import os
import time

import dramatiq
import redis
import urllib3
from common import feed, headers, record
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Retries

URL = os.environ["REDIS_URL"]

broker = RedisBroker(url=URL, middleware=[Retries(max_retries=8)])
dramatiq.set_broker(broker)

# One pool per process; each thread keeps a connection alive.
pool = urllib3.PoolManager(maxsize=64, ca_certs=os.environ["CA_FILE"], cert_reqs="CERT_REQUIRED", retries=False)


@dramatiq.actor(queue_name="deliveries")
def deliver(delivery: str, address: str, body: str) -> None:
    content = body.encode()
    began = time.monotonic()
    answer = pool.request("POST", address, body=content, headers=headers(delivery, content), timeout=10, redirect=False)
    record(delivery, time.monotonic() - began, answer.status, answer.data[:16384].decode("utf-8", "replace"))
    if answer.status >= 300:
        raise RuntimeError(f"The server answered {answer.status}.")


if __name__ == "__main__":
    held = RedisBroker(url=URL, middleware=[], namespace="held")
    held.declare_queue("deliveries")
    client = redis.Redis.from_url(URL)

    def release() -> None:
        client.rename("held:deliveries.msgs", "dramatiq:deliveries.msgs")
        client.rename("held:deliveries", "dramatiq:deliveries")

    feed(lambda *delivery: held.enqueue(deliver.message(*delivery)), release)
