"""The `runs`, `run-requests` and `starts` queues: begin runs, execute them, send their requests, and wake all three."""

from __future__ import annotations

from functools import partial

import dramatiq

from app import mailbox
from app.domain.automations import executions, http_requests
from app.domain.triggers import due_starts, run_states
from workers.mailboxes import serve_by, serve_together
from workers.middleware.waking import Waking
from workers.requester import Requester

serve_together(run_states.MAIL, executions.work)
serve_together(due_starts.MAIL, due_starts.work)
serve_by(Requester(http_requests))
_WAITING = (run_states.WAITING, http_requests.WAITING, due_starts.WAITING)
dramatiq.get_broker().add_middleware(Waking(partial(mailbox.wake_all, *_WAITING)))
