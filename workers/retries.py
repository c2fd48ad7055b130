"""The `retries` process: wakes retries, replays and channel requests, and serves rare mail.

Its queues are `sweeps` (change an endpoint's deliveries), `replays` (send chosen deliveries again) and
`channel-requests` (ask providers to connect or disconnect channels).
"""

from __future__ import annotations

from app.domain.channels import channel_connections, channel_requests
from app.domain.deliveries import lanes, replays, sweeps
from workers.channel_connector import ChannelConnector
from workers.mailboxes import serve, serve_by
from workers.middleware import add
from workers.middleware.waking import Waking

serve(sweeps.MAIL, sweeps.work)
serve(replays.MAIL, replays.work)
serve_by(ChannelConnector(channel_connections))
add(Waking(lanes.WAITING, replays.WAITING, channel_requests.WAITING))
