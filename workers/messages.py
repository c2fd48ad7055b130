"""The `messages` queue: sends the outbound messages of channels."""

from __future__ import annotations

from workers.courier import Courier
from workers.mailboxes import serve_by

serve_by(Courier())
