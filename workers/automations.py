"""The `runs` and `run-requests` queues: execute runs, send the requests they make, and wake both when they are due."""

from __future__ import annotations

from functools import partial

import dramatiq

from app import mailbox
from app.domain.automations import executions, http_requests
from app.domain.triggers import run_states
from workers.mailboxes import serve, serve_together
from workers.middleware.closing import Closing
from workers.middleware.waking import Waking
from workers.requester import Requester

requester = Requester()
serve_together(run_states.MAIL, executions.work)
serve(http_requests.MAIL, requester.wake)
broker = dramatiq.get_broker()
broker.add_middleware(Closing(requester.stop))
broker.add_middleware(Waking(partial(mailbox.wake_all, run_states.WAITING, http_requests.WAITING)))
