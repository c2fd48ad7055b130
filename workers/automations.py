"""The `automations` process: executes runs, sends their requests, and works on broadcasts.

It also wakes runs, requests and broadcasts that wait, when their time comes. Its queues are `runs`, `run-requests` and
`broadcasts`.
"""

from __future__ import annotations

from app.domain.automations import executions, http_requests
from app.domain.broadcasts import broadcast_batches, broadcasts
from app.domain.triggers import run_states
from workers.mailboxes import serve, serve_by, serve_together
from workers.middleware import add
from workers.middleware.waking import Waking
from workers.request_sender import RequestSender

serve_together(run_states.MAIL, executions.work)
serve_by(RequestSender(http_requests))
serve(broadcasts.MAIL, broadcast_batches.work)
add(Waking(run_states.WAITING, http_requests.WAITING, broadcasts.WAITING))
