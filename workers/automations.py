"""The `runs` and `run-requests` queues: execute runs, send the requests they make, and wake both when they are due."""

from __future__ import annotations

from functools import partial

import dramatiq

from app import mailbox
from app.domain.automations import executions, http_requests
from app.domain.triggers import run_states
from workers.mailboxes import serve_by, serve_together
from workers.middleware.waking import Waking
from workers.requester import Requester

serve_together(run_states.MAIL, executions.work)
serve_by(Requester(http_requests))
dramatiq.get_broker().add_middleware(Waking(partial(mailbox.wake_all, run_states.WAITING, http_requests.WAITING)))
