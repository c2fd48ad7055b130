"""Shared by the peers of `python -m bench runs`: five changes of a contact, and reading orders."""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg2

UPDATES = (
    "UPDATE contacts SET tags = array_append(tags, 'welcomed'), updated_at = now() WHERE id = %s",
    "UPDATE contacts SET first_name = 'Grace', updated_at = now() WHERE id = %s",
    """UPDATE contacts SET custom_fields = custom_fields || '{"stage": "new"}', updated_at = now() WHERE id = %s""",
    "UPDATE contacts SET last_name = 'Hopper', updated_at = now() WHERE id = %s",
    "UPDATE contacts SET tags = array_append(tags, 'done'), updated_at = now() WHERE id = %s",
)

_own = threading.local()


def change(number: int, contact_id: str) -> None:
    """Makes one of the changes in a transaction of its own, over the thread's own connection."""
    if not hasattr(_own, "cursor"):
        _own.connection = psycopg2.connect(os.environ["DATABASE_URL"])
        _own.connection.autocommit = True
        _own.cursor = _own.connection.cursor()
    _own.cursor.execute(UPDATES[number], (contact_id,))


def carry_out(run: Callable[[str], object]) -> None:
    """Reads orders: `first number` runs that many contacts from `first` on, THREADS at a time.

    Prints a line after each order.
    """
    with ThreadPoolExecutor(int(os.environ["THREADS"])) as threads:
        for line in sys.stdin:
            first, number = map(int, line.split())
            list(threads.map(run, [f"con_{each}" for each in range(first, first + number)]))
            print("done", flush=True)
