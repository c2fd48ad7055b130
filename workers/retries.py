"""The `retries` process: makes retries, replays and channels' requests due at their time, and serves what is rare.

Its queues are `sweeps`, which change the deliveries of an endpoint, `replays`, which send chosen deliveries again, and
`channel-requests`, which ask providers to connect channels, or to end the connection.
"""

from __future__ import annotations

from functools import partial

from app import mailbox
from app.domain.channels import channel_connections, channel_requests
from app.domain.deliveries import lanes, replay_batches, replays, sweep_batches, sweeps
from workers.connector import Connector
from workers.mailboxes import serve, serve_by
from workers.middleware import add
from workers.middleware.waking import Waking

serve(sweeps.MAIL, sweep_batches.work)
serve(replays.MAIL, replay_batches.work)
serve_by(Connector(channel_connections))
wake = partial(mailbox.wake_all, lanes.WAITING, replays.WAITING, channel_requests.WAITING)
add(Waking(wake))
