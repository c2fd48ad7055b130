"""Sends all requests to third-party servers. Enforces deadlines, limits and address checks."""

from __future__ import annotations

from app.outbound.answers import Answer, Reason, answered, failed
from app.outbound.clients import Outbound
