"""Idempotency keys: what is one, for which request and how long it counts, and the job that it made.

The API takes them from the header `Idempotency-Key`, pages from a field of each form. `jobs.accept` stores one together
with its job.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from peewee import SQL

from app import sql
from app.database import rows
from app.errors import Fault, IdempotencyKeyReused, Invalid, NotFound
from app.models.jobs import IdempotencyKey, Job

# How long a key stands for its job.
WINDOW = "24 hours"
# Later than a key is free, by longer than a statement may take: a request that finds it taken can still read its job.
KEPT = "24 hours 1 minute"

# A UUIDv4 (RFC 9562), bare or quoted.
_KEY = re.compile(
    r'("?)([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\1', re.ASCII | re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A key (a UUID in small letters), and a digest of the request that it stands for."""

    key: str
    fingerprint: bytes


def parse(given: str) -> str:
    """The key that was given, in small letters. Raises Invalid for anything but a UUIDv4."""
    found = _KEY.fullmatch(given.strip())
    if found is None:
        raise Invalid(Fault("/Idempotency-Key", "The Idempotency-Key header must be a UUIDv4, new for each operation."))
    return found[2].lower()


def fingerprint(*parts: bytes) -> bytes:
    """A digest of a request's parts, such as its method, path, query and body."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def find(actor_id: str | None, key: RequestKey) -> Job | None:
    """The job that the actor's key made within WINDOW. Raises IdempotencyKeyReused if that was for another request."""
    counts = IdempotencyKey.created_at > SQL("now() - %s::interval", (WINDOW,))
    return _job_of(actor_id, key, counts)


def find_taken(actor_id: str | None, key: RequestKey) -> Job:
    """The job of a key that `jobs.accept` found taken. Raises IdempotencyKeyReused as `find` does."""
    job = _job_of(actor_id, key)
    if job is None:
        raise NotFound
    return job


def forget_old(limit: int = 10_000) -> int:
    """Deletes up to `limit` keys whose window is over; returns how many."""
    return len(rows(sql.load("forget_old_keys"), {"window": KEPT, "limit": limit}))


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
