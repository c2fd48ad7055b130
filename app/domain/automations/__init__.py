"""Automations: definitions and their steps, published versions, runs, and what carries runs out.

The API and pages call `automations`, `publications`, `controls`, `simulations` and `runs`; workers call `executions`
(whose `interpreter` carries out the steps) and `http_requests`.
"""
