"""Accepted writes: stored once for each idempotency key, looked up, and settled after a failure.

`app.domain.writes` accepts, applies and replays them. `idempotency_keys` parses keys and finds the job that a key made.
`failed_jobs` discards one failed job, `open_failures` replays or discards many.
"""
