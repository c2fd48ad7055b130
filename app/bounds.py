"""Bounds on what an actor, address, workspace or process may use: none may starve the others.

An actor is a token, a member or a visitor. An IPv6 /64 counts as one address. Two kinds of limits are elsewhere: how
many resources a workspace may have (next to each resource, such as `QUOTA` in `endpoints.py`), and how many requests a
token may make (the setting `RATE_LIMIT`). `docs/limits.md` lists all of them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app import metrics
from app.errors import Overloaded
from app.lib import switching


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of `most` for each key. `unit` names what is counted, and the time if there is one."""

    name: str
    most: int
    unit: str

    def reached(self) -> None:
        """Increments the metric that counts how often the bound is reached."""
        metrics.BOUNDS_REACHED.labels(self.name).inc()


class Places:
    """Counts each key's places in this process. Call `leave` once for each `take` that returned True."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self._taken: Counter[Hashable] = Counter()
        self._lock = threading.Lock()

    def take(self, key: Hashable) -> bool:
        """Takes a place without waiting. Returns False if the key already has `bound.most` places."""
        with self._lock:
            is_free = self._taken[key] < self._bound.most
            if is_free:
                self._taken[key] += 1
        if not is_free:
            self._bound.reached()
        return is_free

    def leave(self, key: Hashable) -> None:
        """Gives back one place of the key."""
        with self._lock:
            self._taken[key] -= 1
            if self._taken[key] <= 0:
                del self._taken[key]


class Rates:
    """Counts the actions of each key in this process, in a minute that begins for all keys at once."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._ends_at = 0.0

    def take(self, key: Hashable, bound: Bound, number: int = 1) -> int:
        """Counts `number` actions of the key. Returns 0, or the seconds until the key may act again.

        Always pass the same bound for the same key.
        """
        now = time.monotonic()
        if now >= self._ends_at:
            # Drops all keys each minute, so that keys made up by an attacker take no memory for longer.
            self._counts, self._ends_at = Counter(), now + 60
        self._counts[key] += number
        if self._counts[key] <= bound.most:
            return 0
        bound.reached()
        return math.ceil(self._ends_at - now)


# Requests of web chats. Many visitors may share an address.
CHAT_REQUESTS_PER_VISITOR = Bound("chat_requests_per_visitor", 120, "requests a minute")
CHAT_REQUESTS_PER_ADDRESS = Bound("chat_requests_per_address", 1_200, "requests a minute")
CHAT_UPLOADS_PER_VISITOR = Bound("chat_uploads_per_visitor", 20, "files a minute")
NEW_VISITORS_PER_ADDRESS = Bound("new_visitors_per_address", 30, "visitors a minute")

# Items in the webhooks of providers, in each `web` process.
ARRIVALS_PER_WORKSPACE = Bound("arrivals_per_workspace", 120_000, "messages and statuses of webhooks a minute")

# The default; the channel's setting `new_visitors_per_minute` overrides it.
NEW_VISITORS_PER_CHANNEL = Bound("new_visitors_per_channel", 300, "visitors a minute")

# Live updates, in each `realtime` process. Many visitors and a whole office may share an address.
LIVE_STREAMS_PER_ACTOR = Bound("live_streams_per_actor", 10, "streams")
LIVE_STREAMS_PER_ADDRESS = Bound("live_streams_per_address", 1_000, "streams")
LIVE_STREAMS_PER_WORKSPACE = Bound("live_streams_per_workspace", 5_000, "streams")
LIVE_STREAMS = Bound("live_streams", 20_000, "streams")
# Streams never take the remaining 10 %, so that health checks and the database always get a descriptor.
LIVE_DESCRIPTORS = Bound("live_descriptors", 90, "% of the file descriptors")
LIVE_OPENINGS_PER_ACTOR = Bound("live_openings_per_actor", 60, "streams opened a minute")
LIVE_OPENINGS_PER_ADDRESS = Bound("live_openings_per_address", 1_200, "streams opened a minute")
LIVE_HEADS_PER_ADDRESS = Bound("live_heads_per_address", 100, "requests whose head is not complete")
LIVE_HEADS = Bound("live_heads", 500, "requests whose head is not complete")
LIVE_READINESS = Bound("live_readiness", 50, "requests of `/readyz` under way")
LIVE_HEAD = Bound("live_head", 32 * 1024, "bytes of a head")
LIVE_BUFFER = Bound("live_buffer", 512 * 1024, "bytes that wait for a stream")
LIVE_RESUMED = Bound("live_resumed", 5_000, "updates that a listener has missed")

# The most viewers of conversations at a time. Redis counts them.
VIEWERS_PER_CONVERSATION = Bound("viewers_per_conversation", 50, "who look at a conversation")
VIEWERS_PER_WORKSPACE = Bound("viewers_per_workspace", 5_000, "who look at conversations, each counted for each")

# Requests that wait for their job (because of `Prefer: wait`, or on a page), and requests that take long, such as
# simulations, large definitions and large webhooks. `web` has 16 threads.
WAITING_PER_WORKSPACE = Bound("waiting_per_workspace", 8, "requests that wait or take long, in each `web` process")
WAITING = Bound("waiting", 12, "requests that wait or take long, in each `web` process")
# Test requests from the editor of automations, which show what the customer's server answers.
TESTED_REQUESTS_PER_WORKSPACE = Bound(
    "tested_requests_per_workspace", 10, "requests a minute that are tested, in each `web` process"
)
# Counts of filters, and pages of segments: both scan many contacts.
SEGMENTS_PER_WORKSPACE = Bound("segments_per_workspace", 2, "counts and lists of segments, in each `web` process")
SEGMENTS = Bound("segments", 6, "counts and lists of segments, in each `web` process")
# Reading the largest file takes more than ten seconds.
IMPORTS_PER_WORKSPACE = Bound("imports_per_workspace", 4, "files of contacts that are read, in each `web` process")
IMPORTS = Bound("imports", 8, "files of contacts that are read, in each `web` process")
_WAITING, _WAITING_OF_WORKSPACES = Places(WAITING), Places(WAITING_PER_WORKSPACE)
_SEGMENTS, _SEGMENTS_OF_WORKSPACES = Places(SEGMENTS), Places(SEGMENTS_PER_WORKSPACE)
_IMPORTS, _IMPORTS_OF_WORKSPACES = Places(IMPORTS), Places(IMPORTS_PER_WORKSPACE)
_ALONE = threading.Lock()


@contextmanager
def waiting(workspace_id: str) -> Iterator[bool]:
    """Takes a place for a request that occupies a thread for long. Yields False if none is free."""
    with _both(_WAITING_OF_WORKSPACES, _WAITING, workspace_id) as has_place:
        yield has_place


@contextmanager
def reading_segment(workspace_id: str) -> Iterator[None]:
    """Runs the block, which looks for contacts of a segment. Raises Overloaded if too many do so now."""
    with _both(_SEGMENTS_OF_WORKSPACES, _SEGMENTS, workspace_id) as has_place:
        if not has_place:
            raise Overloaded()
        yield


@contextmanager
def reading_import(workspace_id: str) -> Iterator[None]:
    """Runs the block, which reads a file of contacts. Raises Overloaded if too many are read now."""
    with _both(_IMPORTS_OF_WORKSPACES, _IMPORTS, workspace_id) as has_place:
        if not has_place:
            raise Overloaded()
        yield


@contextmanager
def _both(of_workspaces: Places, of_all: Places, workspace_id: str) -> Iterator[bool]:
    """Takes a place of both bounds for the block. Yields False if either has none free."""
    has_one = of_workspaces.take(workspace_id)
    has_both = has_one and of_all.take(None)
    try:
        yield has_both
    finally:
        if has_both:
            of_all.leave(None)
        if has_one:
            of_workspaces.leave(workspace_id)


@contextmanager
def alone(workspace_id: str) -> Iterator[None]:
    """Runs the block while no other such block runs here. Raises Overloaded if too many wait.

    For requests that compute for long: a second one at the same time would delay all others and finish no earlier.
    """
    with waiting(workspace_id) as has_place:
        if not has_place:
            raise Overloaded()
        with _ALONE, switching.sharing():
            yield


# Files stored per hour. A message has at most ten files of 16 MiB.
STORED_PER_ADDRESS = Bound("stored_per_address", 160 * 1024**2, "bytes of visitors' files an hour")
STORED_PER_NEW_VISITOR = Bound("stored_per_new_visitor", 48 * 1024**2, "bytes an hour before a first message")
STORED_PER_CHANNEL = Bound("stored_per_channel", 2 * 1024**3, "bytes of contacts' files an hour")
STORED_BY_CONTACTS = Bound("stored_by_contacts", 4 * 1024**3, "bytes of contacts' files an hour, in a workspace")
# Counted apart from contacts' files, so that strangers cannot use up the room that members need.
STORED_PER_WORKSPACE = Bound(
    "stored_per_workspace", 4 * 1024**3, "bytes of uploads with a token, and of files for runs, an hour"
)
# Enough for all 16 requests that `web` can serve at once, if each stores a file.
LEAST_FREE = Bound("least_free", 256 * 1024**2, "bytes, at least, that are free under `MEDIA_DIR` and `TMPDIR`")

# Counts a template's steps, not its seconds: the outcome of a run must not depend on how busy a machine is.
COMPUTING_PER_STEP = Bound("computing_per_step", 100_000, "steps of the templates and conditions of a step or macro")
COMPUTING_PER_SIMULATION = Bound("computing_per_simulation", 500_000, "steps of all templates and conditions")
# Parsing a tag's names takes ten times as long as rendering the tag. The bound is about one second of work.
COMPUTING_PER_DEFINITION = Bound(
    "computing_per_definition", 60_000, "parts of tags, regular expressions and comparisons with buttons"
)
# In a flow of 700 elements that each lead to the next two, the number of paths is exponential. The bound is about one
# second of work.
COMPUTING_PER_IMPORT = Bound(
    "computing_per_import", 3_000_000, "elements and characters that are looked at to import an automation"
)
# Without this bound, five automations that each start all five would begin twelve million runs, ten levels deep.
RUNS_OF_CHAIN = Bound("runs_of_chain", 1_000, "runs of a contact that follow from one cause")
# Only one of the process's four threads: a second heavy one would halve the speed of both, and make all others wait
# longer for the interpreter.
RUNS_HEAVY = Bound(
    "runs_heavy", 1, "threads of an `automations` process for workspaces whose runs or broadcasts compute for long"
)
# A hundred broadcasts take turns on one thread, so that one workspace never occupies all four.
BROADCASTS_PER_WORKSPACE = Bound(
    "broadcasts_per_workspace", 1, "threads for the broadcasts of a workspace, in each `automations` process"
)

# A caller is a token or a browser session. The threads above this bound are left for other callers.
WEB_PER_CALLER = Bound("web_per_caller", 12, "requests under way, in each `web` process")
# Counted over all sessions of a workspace, so that many members together hold no more threads than one caller may.
PAGES_PER_WORKSPACE = Bound("pages_per_workspace", 12, "pages of a workspace under way, in each `web` process")
PAGES_PER_SESSION = Bound("pages_per_session", 1_200, "pages a minute")
PAGES = Places(PAGES_PER_WORKSPACE)

# Bounds on slow clients, in each `web` process. Half of its 16 threads never wait for a large body.
WEB_CONNECTIONS = Bound("web_connections", 1_000, "connections")
WEB_UNFINISHED_PER_ADDRESS = Bound("web_unfinished_per_address", 100, "requests that have not arrived")
WEB_UNFINISHED = Bound("web_unfinished", 500, "requests that have not arrived")
WEB_BODIES_PER_ADDRESS = Bound("web_bodies_per_address", 4, "large bodies that arrive")
WEB_BODIES = Bound("web_bodies", 8, "large bodies that arrive")
WEB_PROGRESS = Bound("web_progress", 4_096, "bytes a second, at least, from the tenth second on")

ALL = tuple(value for value in list(globals().values()) if isinstance(value, Bound))
