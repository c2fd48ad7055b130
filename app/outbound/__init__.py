"""The only way to other people's servers, by HTTP or SMTP: deadlines, limits, address checks."""

from __future__ import annotations

from app.outbound.answers import Answer, Reason, answered, failed
from app.outbound.clients import Outbound
