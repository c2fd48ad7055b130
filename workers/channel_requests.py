"""The `channel-requests` queue: asks providers to connect channels, or to end the connection."""

from __future__ import annotations

import dramatiq

from app.domain.channels.channel_requests import MAIL
from workers.connector import Connector
from workers.mailboxes import serve
from workers.middleware.closing import Closing

connector = Connector()
serve(MAIL, connector.wake)
dramatiq.get_broker().add_middleware(Closing(connector.stop))
