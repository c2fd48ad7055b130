"""Mail: rows of a table that wait for work.

A worker claims rows under a lease, and records each outcome only while the claim is the row's last.

A mailbox is all the mail of one owner, such as the writes of a workspace or the deliveries of an endpoint. Columns:

- `due_at`: since when a row can be claimed. It is null in a finished row, and in a row that waits for a later time,
  which is not mail yet (`waking.py`).
- `leased_until`: a claim sets it, and recording the outcome clears it. If a worker dies, the row can be claimed again
  when its lease ends. No index contains this column, so a claim writes no index entry.
- `claim`: the number of the row's last claim. It fences outcomes: a stale worker, with an older claim, changes nothing.

A mailbox is `exclusive` or shared. One worker at a time has an exclusive mailbox, and takes its rows in order. Several
workers may have a shared mailbox, and a row that waits blocks no other.

Bells (`app/bells`) only say where to look. The scheduler looks where no bell was heard.
"""

from __future__ import annotations

from app.mailbox.claims import claim, holding
from app.mailbox.deaths import in_progress
from app.mailbox.depths import Place, count_waiting
from app.mailbox.findings import Found, Held, Pause, may_have_more
from app.mailbox.heads import starts
from app.mailbox.mail import Claimed, Mail, hear, ring, ring_again
from app.mailbox.outcomes import PutOff, drop, put_off, release
from app.mailbox.overdue import overdue
from app.mailbox.serving import serve, serve_shared, serve_together
from app.mailbox.waking import Waiting, wake, wake_all, wake_and_ring
