"""Webhooks with Celery and requests. Run as a program, it feeds the workers."""

import os
import time

import redis
import requests
from celery import Celery
from common import feed, headers, record

HELD = "held"

app = Celery("peer", broker=os.environ["REDIS_URL"])
app.conf.update(
    task_default_queue="deliveries",
    task_ignore_result=True,
    worker_prefetch_multiplier=int(os.environ.get("PREFETCH", "4")),
    worker_disable_rate_limits=True,
    worker_send_task_events=False,
)

# One session per process, which does one task at a time; it keeps connections alive.
session = requests.Session()
session.trust_env = False  # otherwise every request looks for proxies and .netrc
session.verify = os.environ["CA_FILE"]


@app.task(name="deliver", autoretry_for=(requests.RequestException,), retry_backoff=True, max_retries=8)
def deliver(delivery: str, address: str, body: str) -> None:
    content = body.encode()
    began = time.monotonic()
    answer = session.post(address, data=content, headers=headers(delivery, content), timeout=10, allow_redirects=False)
    record(delivery, time.monotonic() - began, answer.status_code, answer.text[:16384])
    answer.raise_for_status()


if __name__ == "__main__":
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    with app.producer_pool.acquire(block=True) as producer:
        feed(
            lambda *delivery: deliver.apply_async(delivery, queue=HELD, producer=producer),
            lambda: client.rename(HELD, "deliveries"),
        )
