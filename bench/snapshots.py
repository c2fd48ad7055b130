"""The blocks that claims of mail read while another transaction holds a snapshot."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from app import database
from app.config import settings
from app.database import rows
from app.mailbox import Mail, marks
from bench.figures import Row
from bench.sites import Site, Tell
from tests.app.mailbox import steady

# As much mail as one owner has in three minutes.
PER_SECOND = 450
FINISHED = 180 * PER_SECOND
QUICK = 4_000  # the rows of a small run
# Enough claims that the marks of mail by time, which stay some seconds behind, have passed what was finished before.
CLAIMS = 6 * PER_SECOND // steady.ROOM
MOST_TIMES = 2


def run(site: Site, tell: Tell, finished: int = FINISHED) -> list[Row]:
    """Counts the blocks before the snapshot, and after `finished` rows of each kind under it."""
    with _connected(site):
        measured = [_measure(mail, site.workspace, finished, tell) for mail in steady.KINDS]
    return [row for row in measured if row is not None]


def _measure(mail: Mail, workspace_id: str, finished: int, tell: Tell) -> Row | None:
    """Only tells the figures if the mail has no marks."""
    owner = steady.open_mailbox(mail, workspace_id)
    steady.go_on(mail, owner, 2_000)
    before = _blocks(mail, owner)
    with steady.snapshot_held():
        steady.go_on(mail, owner, finished)
        rows(f"ANALYZE {mail.table}")
        held = _blocks(mail, owner)
        marks.of.cache_clear()
        steady.post(mail, owner, steady.ROOM)
        unmarked = steady.take(mail, owner)
        looked_at = steady.blocks_of_pass(mail)
    tell(
        f"{mail.table}: {before:,.0f} blocks, {held:,.0f} under the snapshot, {unmarked:,.0f} without a mark;"
        f" a pass over overdue mail reads {looked_at:,.0f}"
    )
    what = f"blocks read by a claim of {steady.ROOM} {mail.table}, {finished:,} finished under a snapshot"
    figure = f"{held:,.0f} instead of {before:,.0f}"
    target = f"at most {MOST_TIMES} times"
    return Row("snapshot", what, figure, target, held <= MOST_TIMES * before) if mail.has_marks else None


def _blocks(mail: Mail, owner: str) -> float:
    """The blocks that a claim reads while the owner gets PER_SECOND rows a second."""
    return steady.blocks_of_claims(mail, owner, CLAIMS, steady.ROOM / PER_SECOND)


@contextmanager
def _connected(site: Site) -> Iterator[None]:
    """Has this process use the servers of the site, which runs no processes."""
    before = dict(os.environ)
    os.environ.update(DATABASE_URL=site.stack.postgres.url, REDIS_URL=site.stack.redis.url, SECRET_KEY="bench-" * 8)
    settings.cache_clear()
    database.connect_to(site.stack.postgres.url)
    try:
        yield
    finally:
        database.database.close()
        os.environ.clear()
        os.environ.update(before)
        settings.cache_clear()
