"""The `runs` and `run-requests` queues: execute runs, send the requests they make, and wake both when they are due."""

from __future__ import annotations

import dramatiq

from app import mailbox
from app.domain.automations import executions, http_requests
from app.domain.triggers import run_states
from workers.mailboxes import serve_by, serve_together
from workers.middleware.waking import Waking
from workers.requester import Requester


def wake() -> int:
    """Makes runs and requests whose time has come due, a batch of each at most; returns the size of the larger."""
    return max(mailbox.wake_and_ring(run_states.WAITING), mailbox.wake_and_ring(http_requests.WAITING))


serve_together(run_states.MAIL, executions.work)
serve_by(Requester(http_requests))
dramatiq.get_broker().add_middleware(Waking(wake))
