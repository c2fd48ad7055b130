"""Accepted writes: stored once for each idempotency key, looked up, and settled after a failure.

The API and pages call `jobs.accept`; `app.domain.writes` carries jobs out. `idempotency_keys` parses keys and finds the
job that a key made. `failed_jobs` replays or discards one failed job, `open_failures` many.
"""
