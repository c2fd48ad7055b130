"""The troubles of played providers look to a sender as real ones do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.channels.base import Request
from app.outbound import Answer
from tests.app.channels import asking
from tests.providers.base import Call, Provider, Reply, Trouble


class Counter(Provider):
    """Counts what it has taken."""

    taken = 0

    def reply(self, call: Call) -> Reply:
        self.taken += 1
        return Reply(200, {"taken": self.taken})


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[Counter]:
    provider = Counter(tmp_path)
    provider.start()
    yield provider
    provider.stop()


def ask(provider: Provider, times: int = 1) -> Answer:
    """The last answer."""
    return asking.ask(provider, *[Request("POST", f"{provider.url}/count", body=b"one")] * times)[-1]


def test_a_request_is_answered_and_kept(counter: Counter) -> None:
    assert ask(counter).body == b'{"taken": 1}'
    assert [(call.method, call.path, call.body) for call in counter.called("/count")] == [("POST", "/count", b"one")]


def test_a_connection_cut_before_the_request_leaves_not_a_byte(counter: Counter) -> None:
    counter.cut_before(True)
    assert not ask(counter).may_have_arrived
    counter.cut_before(False)
    assert ask(counter).ok
    assert counter.taken == 1


@pytest.mark.parametrize(("trouble", "taken"), [(Trouble.HANG, 1), (Trouble.CUT_AFTER, 1), (Trouble.CUT_UNTAKEN, 0)])
def test_after_the_request_nobody_knows_whether_it_was_taken(counter: Counter, trouble: Trouble, taken: int) -> None:
    counter.happens(trouble)
    answer = ask(counter)
    assert (answer.status, answer.may_have_arrived, counter.taken) == (None, True, taken)


def test_a_refusal_is_met_by_the_requests_it_is_for(counter: Counter) -> None:
    counter.happens(Reply(429, {"pause": 3}), path="/count")
    counter.happens(Reply(500), path="/other")
    assert ask(counter).status == 429
    assert ask(counter).ok


def test_a_lasting_trouble_ends_when_it_is_told_to(counter: Counter) -> None:
    counter.always(Reply(503))
    assert ask(counter, times=3).status == 503
    counter.always(None)
    assert ask(counter).ok


def test_a_server_that_hangs_can_be_stopped_and_started(counter: Counter) -> None:
    counter.always(Trouble.HANG)
    ask(counter)
    counter.stop()
    counter.always(None)
    counter.start()
    assert ask(counter).ok
