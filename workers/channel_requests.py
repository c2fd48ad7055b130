"""The `channel-requests` queue: asks providers to connect channels, or to end the connection."""

from __future__ import annotations

from workers.connector import Connector
from workers.mailboxes import serve_by

serve_by(Connector())
