"""The blocks that a claim of writes reads while another transaction holds a snapshot."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from app import database
from app.config import settings
from app.database import rows
from app.mailbox import marks
from bench.figures import Row
from bench.sites import Site, Tell
from tests.app.mailbox import steady

# As many writes as one workspace has in three minutes at 450 a second.
FINISHED = 81_000
QUICK = 4_000  # the writes of a small run
MOST_TIMES = 2


def run(site: Site, tell: Tell, finished: int = FINISHED) -> list[Row]:
    """Counts the blocks before the snapshot, and after `finished` writes under it."""
    owner = site.workspace
    with _connected(site):
        steady.go_on(owner, 2_000)
        before = steady.blocks_of_claims(owner)
        with steady.snapshot_held():
            steady.go_on(owner, finished)
            rows("ANALYZE jobs")
            held = steady.blocks_of_claims(owner)
            marks.of.cache_clear()
            steady.post(owner, steady.ROOM)
            unmarked = steady.take(owner)
    tell(f"{before:,.0f} blocks, {held:,.0f} under the snapshot, {unmarked:,.0f} without a mark")
    what = f"blocks read by a claim of {steady.ROOM} writes, {finished:,} finished under a snapshot"
    figure = f"{held:,.0f} instead of {before:,.0f}"
    return [Row("snapshot", what, figure, f"at most {MOST_TIMES} times", held <= MOST_TIMES * before)]


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
