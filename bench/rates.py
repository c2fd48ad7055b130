"""The rates of providers, which four `messages` processes must keep together.

Measured by what arrives at the provider while more messages wait. Telegram takes 30 messages a second from a bot and
one a second in a chat. WhatsApp takes 80 a second from a number, and one every 6 seconds to a contact after a burst of
45. All four rates are measured at once, each at a channel of its own. Target: the rate is reached, and not exceeded,
within 2 %.
"""

import math
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench import sites
from bench.errors import BenchError
from bench.figures import Row
from bench.provider import Provider, Taken, playing
from bench.sites import Site, Tell
from tests.providers.telegram import TOKEN
from tests.stack.ports import free_port
from tests.stack.posts import connect, post

PORT = free_port()
SETTINGS = {"TELEGRAM_API_URL": f"https://127.0.0.1:{PORT}", "WHATSAPP_API_URL": f"https://127.0.0.1:{PORT}"}
COUNTS = {"messages": 4}
TOLERANCE = 0.02
RAMP_SECONDS, SPARE_SECONDS = 2, 4
# How many conversations a channel has: so many that the channel's rate limits them, or so few that their own rates do.
MANY, FEW = 60, 4
WHATSAPP = {"access_token": "token", "app_secret": "secret", "verify_token": "verify"}


@dataclass(frozen=True)
class Size:
    """For how long rates are measured, and how many messages beyond its burst a contact gets."""

    seconds: int = 20
    beyond_burst: int = 13


@dataclass(frozen=True)
class Case:
    """A rate of a channel, or of each of its conversations. `number`: the number of the bot or phone."""

    name: str
    kind: str
    number: int
    per_second: float
    is_of_channel: bool
    burst: int = 1

    @property
    def path(self) -> str:
        return f"/bot{self._token}/sendMessage" if self.kind == "telegram" else f"/{self.number}/messages"

    def connect(self, site: Site) -> str:
        """Connects a channel for the case. Returns its identifier."""
        if self.kind == "telegram":
            return connect(site.stack, site.workspace, self.kind, {"bot_token": self._token, "hook_secret": "s"}, {})
        return connect(site.stack, site.workspace, self.kind, WHATSAPP, {"phone_number_id": str(self.number)})

    def lengths(self, size: Size) -> tuple[int, int]:
        """Returns how many conversations there are, and how many messages in each."""
        seconds = RAMP_SECONDS + size.seconds + SPARE_SECONDS
        if self.is_of_channel:
            return MANY, math.ceil(self.per_second * seconds / MANY)
        return FEW, self.burst + (size.beyond_burst if self.burst > 1 else seconds)

    @property
    def _token(self) -> str:
        return f"{self.number}{TOKEN}"


# The rates that the providers document.
CASES = (
    Case("Telegram, a bot", "telegram", 1, 30, is_of_channel=True),
    Case("Telegram, a chat", "telegram", 2, 1, is_of_channel=False),
    Case("WhatsApp, a number", "whatsapp", 3, 80, is_of_channel=True),
    Case("WhatsApp, a contact", "whatsapp", 4, 1 / 6, is_of_channel=False, burst=45),
)


FULL, QUICK = Size(), Size(seconds=5, beyond_burst=3)


def run(site: Site, tell: Tell, size: Size = FULL) -> list[Row]:
    with playing(site, PORT) as provider:
        sites.start_types(site, "messages", "scheduler")
        for case in CASES:
            post(site.stack, site.workspace, [case.connect(site)], *case.lengths(size))
        site.query("ANALYZE messages, conversations, contacts")
        number = sum(math.prod(case.lengths(size)) for case in CASES)
        tell(f"{number:,} messages wait")
        _wait_until_sent(site, provider, number)
        taken = provider.taken()
    return [row for case in CASES for row in _kept(case, [each for each in taken if each.path == case.path], size)]


def _wait_until_sent(site: Site, provider: Provider, number: int) -> None:
    """Returns when no message waits.

    Raises BenchError if the provider did not get that many messages, or if it takes too long.
    """
    ends = time.monotonic() + 300
    while site.query("SELECT 1 FROM messages WHERE due_at IS NOT NULL LIMIT 1"):
        if time.monotonic() > ends:
            raise BenchError("The messages were not sent within 300 seconds.")
        time.sleep(1)
    if provider.count() != number:
        raise BenchError(f"The provider got {provider.count()} messages, and there were {number}.")


def _kept(case: Case, taken: Sequence[Taken], size: Size) -> list[Row]:
    if case.is_of_channel:
        return _of_channel(case, [each.at for each in taken], size)
    by_peer: dict[str, list[float]] = defaultdict(list)
    for each in taken:
        by_peer[each.to].append(each.at)
    return _of_conversations(case, list(by_peer.values()))


def _of_channel(case: Case, times: Sequence[float], size: Size) -> list[Row]:
    begin = times[0] + RAMP_SECONDS
    end = begin + size.seconds
    if times[-1] < end:
        raise BenchError(f"{case.name}: nothing was left to be sent before the end.")
    counted = [at for at in times if begin <= at < end]
    most = max(place - bisect_left(times, at - 1) + 1 for place, at in enumerate(times))
    return [
        _row(case, len(counted) / size.seconds),
        Row("rates", f"{case.name}, most in any second", str(most)),
    ]


def _of_conversations(case: Case, conversations: Sequence[Sequence[float]]) -> list[Row]:
    """Describes the rates after the bursts, each counted from the first message of its conversation."""
    reached = [(len(times) - case.burst) / (times[-1] - times[0]) for times in conversations]
    rows = [
        _row(case, sum(reached) / len(reached)),
        Row("rates", f"{case.name}, least and most of {len(reached)}", f"{min(reached):.4f}/s, {max(reached):.4f}/s"),
    ]
    if case.burst > 1:
        seconds = max(times[case.burst - 1] - times[0] for times in conversations)
        return [*rows, Row("rates", f"{case.name}, {case.burst} at once", f"within {seconds:.1f} s")]
    shortest = min(later - at for times in conversations for at, later in pairwise(times))
    return [*rows, Row("rates", f"{case.name}, shortest pause", f"{shortest:.2f} s")]


def _row(case: Case, reached: float) -> Row:
    target = case.per_second
    share = reached / target
    figure = f"{reached:.{4 if target < 10 else 1}f}/s, {share:.3f} of it"
    return Row("rates", case.name, figure, f"{target:.4g}/s, within {TOLERANCE:.0%}", abs(share - 1) <= TOLERANCE)
