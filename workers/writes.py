"""The `writes` and `fan-outs` queues: apply writes, and create the deliveries of large events."""

from __future__ import annotations

from app.domain import writes
from app.domain.deliveries import fan_out
from app.domain.jobs import jobs
from app.domain.triggers import fan_out_parts
from workers.mailboxes import serve

serve(jobs.MAIL, writes.work)
serve(fan_out.MAIL, fan_out_parts.work)
