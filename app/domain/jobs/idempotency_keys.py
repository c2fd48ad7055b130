"""Idempotency keys: their format, how long they count, and the job that each made.

The API takes them from the header `Idempotency-Key`, pages from a field of each form. `writes.accept` stores a key
together with its job.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from peewee import SQL

from app.errors import Fault, IdempotencyKeyReused, Invalid, NotFound
from app.models.jobs import IdempotencyKey, Job

# How long a key stands for its job.
WINDOW = "24 hours"
# How long a key is stored: longer than WINDOW by more than a statement may take, so that a request that finds a key
# taken can still read its job.
KEPT = "24 hours 1 minute"

# A UUIDv4 (RFC 9562), bare or quoted.
_KEY = re.compile(
    r'("?)([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\1', re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A key (a UUID in lower case), and a digest of the request that it stands for."""

    key: str
    fingerprint: bytes


def parse(given: str) -> str:
    """Returns the given key, in lower case. Raises Invalid for anything but a UUIDv4."""
    found = _KEY.fullmatch(given.strip())
    if found is None:
        raise Invalid(Fault("/Idempotency-Key", "The Idempotency-Key header must be a UUIDv4, new for each operation."))
    return found[2].lower()


def fingerprint(*parts: bytes) -> bytes:
    """Returns a digest of a request's parts, such as its method, path, query and body."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def find(actor_id: str | None, key: RequestKey) -> Job | None:
    """Returns the job that the actor's key made within WINDOW; None if there is none.

    Raises IdempotencyKeyReused if the key was used for another request.
    """
    counts = IdempotencyKey.created_at > SQL("now() - %s::interval", (WINDOW,))
    return _job_of(actor_id, key, counts)


def find_taken(actor_id: str | None, key: RequestKey) -> Job:
    """Returns the job of a key that was found taken. Raises like `find`, and NotFound if it is gone."""
    job = _job_of(actor_id, key)
    if job is None:
        raise NotFound
    return job


def _job_of(actor_id: str | None, key: RequestKey, *conditions: Any) -> Job | None:
    found: Job | None = (
        Job.select(Job, IdempotencyKey.fingerprint)
        .join(IdempotencyKey, on=(IdempotencyKey.job_id == Job.id), attr="once")
        .where(IdempotencyKey.actor_id == actor_id, IdempotencyKey.key == key.key, *conditions)
        .first()
    )
    if found is not None and bytes(found.once.fingerprint) != key.fingerprint:  # type: ignore[attr-defined]
        raise IdempotencyKeyReused()
    return found
