"""Accepted writes: stored once per idempotency key, found again, and replaced when they failed.

The edges call `jobs.accept`; `app.domain.writes` carries jobs out. `idempotency_keys` says what a key
is, how long it counts, and which job it made. `failed_jobs` settles one that failed, `open_failures` many.
"""
