"""Accepted writes: stored once for each idempotency key, looked up, and settled after a failure.

`app.domain.writes` accepts, applies and replays them. `idempotency_keys` parses keys and finds the job that a key made.
`failed_jobs` discards a failed job, and replays or discards many. `parts` does bulk work in small transactions.
"""
