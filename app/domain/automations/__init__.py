"""Automations: definitions and their steps, published versions, runs, and their execution.

The API and pages call `automations`, `publications`, `controls`, `simulations` and `runs`. Workers call `executions`
(whose `interpreter` takes the steps) and `http_requests`.
"""
