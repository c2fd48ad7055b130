"""The `writes` and `fan-outs` queues: apply accepted writes, and make the deliveries of events that have many."""

from __future__ import annotations

from app.domain import fan_out, fan_out_parts, jobs, writes
from workers.mailboxes import serve

serve(jobs.MAIL, writes.work)
serve(fan_out.MAIL, fan_out_parts.work)
