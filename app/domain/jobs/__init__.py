"""Accepted writes: stored once per idempotency key, found again, and replaced when they failed.

The edges call `jobs.accept` and `jobs.find`; `app.domain.writes` carries jobs out.
"""
