"""Mail: work that waits in a table, claimed under a lease, its outcome recorded only under the claim.

A mailbox is all the mail of one owner: the writes of a workspace, the deliveries of an endpoint. Its columns:

- `due_at`: since when a row may be claimed. A finished row has none, and neither has one that waits for a later time
  (`waking.py`): that is not mail yet.
- `leased_until`: a claim sets it, recording the outcome clears it. A row whose worker died can be claimed again when
  its lease ends. No index has this column, so a claim writes no index entry.
- `claim`: the number a row was last claimed under, which fences its outcome: a stale worker changes nothing.

Mail is `exclusive` (one worker at a time has the mailbox, and nothing in it overtakes) or shared (several workers may,
and what waits blocks nothing else).

Bells (`app/bells`) only say where to look, and the scheduler looks where no bell was heard.
"""

from __future__ import annotations

from app.mailbox.claims import claim, holding
from app.mailbox.deaths import in_progress
from app.mailbox.depths import Place, count_waiting
from app.mailbox.findings import Found, Held, Pause, may_have_more
from app.mailbox.mail import Claimed, Mail, hear, ring, ring_again
from app.mailbox.outcomes import PutOff, drop, put_off, release
from app.mailbox.overdue import overdue
from app.mailbox.serving import serve, serve_shared, serve_together
from app.mailbox.waking import Waiting, wake, wake_all, wake_and_ring
