"""Messages come in and go out over three channels once and in order, whatever happens to processes and providers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.journeys import surveys
from tests.journeys.audit import rows
from tests.journeys.conversing import (
    KINDS,
    Providers,
    Talker,
    Talks,
    begin_talks,
    count_statuses,
    flaws,
    interleaved,
    unstored,
)
from tests.journeys.faults import empty_redis, kill, restart_postgres
from tests.journeys.runs import publish
from tests.journeys.shops import open_shop
from tests.journeys.talking import kill_each, trouble
from tests.journeys.waiting import wait_until
from tests.providers.base import Trouble
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

# Messages in, and as many out.
TALKS = int(os.environ.get("TALKS", "240"))
# A message whose worker died becomes unknown when its lease ends, and only then the next one goes out.
SETTLE_SECONDS = 300 + TALKS // 5


def interrupt_fetches(stack: Stack, released: threading.Event) -> None:
    """Kills the workers while the server lets them wait for files. Their leases end now, and not in a minute."""
    leased = "UPDATE uploads SET leased_until = {} WHERE leased_until > now() RETURNING 1"
    wait_until(lambda: rows(stack, leased.format("leased_until")), 120, "files are fetched")
    kill(stack, "messages")
    released.set()
    rows(stack, leased.format("now()"))


def test_messages_are_stored_and_sent_once_and_in_order_under_all_faults(
    talking: Stack, providers: Providers, webhooks: Receiver, report: Callable[[object], None]
) -> None:
    talks = begin_talks(talking, open_shop(talking, webhooks), providers, each=max(4, min(40, TALKS // 20)))
    rounds = TALKS // len(talks.talkers)

    began = time.monotonic()
    threads = [
        *(threading.Thread(target=_write, args=(talks.say, "in", talks.talkers[n::4], rounds)) for n in range(4)),
        *(threading.Thread(target=_write, args=(talks.answer, "out", talks.talkers[n::4], rounds)) for n in range(4)),
    ]
    for thread in threads:
        thread.start()
    trouble(providers)
    kill_each(talking)
    empty_redis(talking)
    restart_postgres(talking)
    for thread in threads:
        thread.join()
    talking.processes.wait_ready()
    wait_until(lambda: talks.unfinished() == 0, SETTLE_SECONDS, "all is stored and sent")

    counted = count_statuses(talks)
    report(f"{sum(map(len, talks.said.values()))} in, {dict(counted)} out, {time.monotonic() - began:.1f} s")
    assert list(flaws(talks)) == []
    assert sum(map(len, talks.said.values())) == (rounds + 1) * len(talks.talkers)
    assert counted.total() == rounds * len(talks.talkers)


WELCOME = [
    {"id": "ask", "kind": "send_message", "text": "ask-{{ contact.id }}-1"},
    {"id": "reply", "kind": "wait_for_reply", "timeout_seconds": 600, "save_as": "answer"},
    {"id": "thank", "kind": "send_message", "text": "{{ steps.answer }}-2"},
]


@pytest.mark.parametrize("kind", KINDS)
def test_an_automation_asks_and_gets_its_answer(
    kind: str, talking: Stack, providers: Providers, webhooks: Receiver, report: Callable[[object], None]
) -> None:
    shop = open_shop(talking, webhooks)
    talks = begin_talks(talking, shop, providers, each=5)
    publish(shop, WELCOME, "Welcome", triggers=[{"event": "message.received"}], reentry="after_finish")
    seconds = []

    for talker in [talker for talker in talks.talkers if talker.kind == kind]:
        began = time.monotonic()
        talks.say(talker, f"hello-{talker.number}")
        wait_until(lambda talker=talker: len(talks.shown(talker)) >= 1, 60, "the question is there")
        seconds.append(time.monotonic() - began)
        talks.say(talker, f"reply-{talker.number}")
        wait_until(lambda talker=talker: len(talks.shown(talker)) >= 2, 60, "the answer is there")
        assert talks.shown(talker)[1] == f"reply-{talker.number}-2"

    report(f"message to question: {', '.join(f'{each * 1000:.0f}' for each in sorted(seconds))} ms")


@pytest.mark.nightly
def test_each_question_is_asked_once_and_gets_its_answer_under_faults(
    talking: Stack, providers: Providers, webhooks: Receiver, report: Callable[[object], None]
) -> None:
    shop = open_shop(talking, webhooks)
    talks = begin_talks(talking, shop, providers, each=8)
    released = threading.Event()
    webhooks.behaviour = partial(surveys.serve_files, released)
    made = talking.command("member", "create", shop.workspace_id, "ada@example.com", "--role", "agent", input="x" * 16)
    member_id, steps = made["id"], surveys.steps(webhooks, made["id"])
    automation = publish(shop, steps, "Survey", triggers=[{"event": "message.received"}], reentry="after_finish")
    asked = "SELECT count(*) FROM messages WHERE workspace_id = %s AND direction = 'out'"
    faults: list[Callable[[], object]] = [
        lambda: kill(talking, "automations"),
        lambda: kill(talking, "messages", "writes", "automations"),
        lambda: (interrupt_fetches(talking, released), restart_postgres(talking)),
        lambda: empty_redis(talking),
    ]

    began = time.monotonic()
    for number, (says, fault) in enumerate(zip(surveys.SAID, faults, strict=True), 1):
        for place, talker in enumerate(talks.talkers):
            talks.say(talker, says(talker))
            if place == len(talks.talkers) // 2:
                fault()
        wanted = number * len(talks.talkers)
        wait_until(lambda wanted=wanted: rows(talking, asked, shop.workspace_id) >= [(wanted,)], 120, "all are asked")
    wait_until(lambda: talks.unfinished() == 0, SETTLE_SECONDS, "all is sent")

    again = "SELECT 1 FROM uploads WHERE workspace_id = %s AND claim > 1"
    files = f"{len(rows(talking, again, shop.workspace_id))} files fetched again"
    report(f"{len(talks.talkers)} runs that ask, {files}, {time.monotonic() - began:.1f} s")
    assert list(surveys.flaws(talks, automation, member_id)) == []


def test_an_automation_waits_while_a_member_writes(talking: Stack, providers: Providers, webhooks: Receiver) -> None:
    shop = open_shop(talking, webhooks)
    talks = begin_talks(talking, shop, providers, each=1)
    publish(shop, WELCOME, "Welcome", triggers=[{"event": "message.received"}], reentry="after_finish")

    for talker in talks.talkers:
        talks.say(talker, f"hello-{talker.number}")
    wait_until(lambda: all(talks.shown(talker) for talker in talks.talkers), 60, "the questions are there")
    _as_member(talks, lambda: _write(talks.answer, "out", talks.talkers, 1))
    wait_until(lambda: all(len(talks.shown(talker)) == 2 for talker in talks.talkers), 60, "the member has written")
    for talker in talks.talkers:
        talks.say(talker, f"reply-{talker.number}")
    held = "SELECT count(*) FROM runs WHERE workspace_id = %s AND status = 'held'"
    wait_until(lambda: rows(talking, held, shop.workspace_id) == [(3,)], 60, "the runs are held")
    assert [len(talks.shown(talker)) for talker in talks.talkers] == [2, 2, 2]

    for talker in talks.talkers:
        shop.caller().apply("PATCH", f"conversations/{talker.conversation_id}", {"status": "closed"})
    wait_until(lambda: all(len(talks.shown(talker)) == 3 for talker in talks.talkers), 60, "the runs go on")

    assert [talks.shown(talker)[-1] for talker in talks.talkers] == [f"reply-{each.number}-2" for each in talks.talkers]


@pytest.mark.nightly
def test_automations_do_not_write_in_quiet_hours(talking: Stack, providers: Providers, webhooks: Receiver) -> None:
    shop = open_shop(talking, webhooks)
    ends = (datetime.now(UTC) + timedelta(seconds=75)).replace(second=0, microsecond=0)
    quiet = {"from": f"{ends - timedelta(hours=6):%H:%M}", "to": f"{ends:%H:%M}"}
    shop.caller().apply("PATCH", "", {"timezone": "UTC", "quiet_hours": quiet})
    talks = begin_talks(talking, shop, providers, each=1)
    steps = [
        {"id": "now", "kind": "send_message", "text": "now-{{ contact.id }}-1", "quiet_hours": "ignore"},
        {"id": "later", "kind": "send_message", "text": "later-{{ contact.id }}-2"},
    ]
    publish(shop, steps, "Night", triggers=[{"event": "message.received"}])

    for talker in talks.talkers:
        talks.say(talker, f"hello-{talker.number}-1")
    wait_until(lambda: all(talks.shown(talker) for talker in talks.talkers), 60, "what may be sent at night is sent")
    wait_until(lambda: all(len(talks.shown(talker)) == 2 for talker in talks.talkers), 120, "the rest follows")

    sent = "SELECT min(created_at) FROM messages WHERE workspace_id = %s AND text LIKE 'later-%%'"
    assert rows(talking, sent, shop.workspace_id)[0][0] >= ends


def test_a_provider_that_cuts_connections_leaves_as_many_unknown_as_it_cut(
    talking: Stack, providers: Providers, webhooks: Receiver
) -> None:
    talks = begin_talks(talking, open_shop(talking, webhooks), providers, each=6)
    providers.telegram.happens(Trouble.CUT_AFTER, path="sendMessage", times=3)
    providers.whatsapp.happens(Trouble.CUT_AFTER, path="messages", times=2)

    _write(talks.answer, "out", talks.talkers, 4)
    wait_until(lambda: talks.unfinished() == 0, 120, "all is sent")

    counted = count_statuses(talks)
    assert (counted["sent"], counted.total()) == (24 * 3 - 5, 24 * 3)
    assert list(flaws(talks)) == []


@pytest.mark.several_processes
def test_queued_writes_do_not_hold_up_what_contacts_write(
    talking: Stack, providers: Providers, webhooks: Receiver
) -> None:
    talks = begin_talks(talking, open_shop(talking, webhooks), providers, each=2)
    queued = "SELECT count(*) FROM jobs WHERE workspace_id = %s AND status IN ('queued', 'running')"
    talking.processes.stop("writes.1")
    try:
        for number in range(300):
            talks.shop.caller().call("POST", "contacts", {"external_id": f"customer-{number}"})
        _write(talks.say, "in", talks.talkers, 2)
        wait_until(lambda: not unstored(talks), 60, "all is stored")
        assert rows(talking, queued, talks.shop.workspace_id) == [(300,)]
    finally:
        talking.processes.start("writes.1")


def _as_member(talks: Talks, write: Callable[[], None]) -> None:
    """What is written becomes a member's before any worker sees it: members have no API of their own."""
    talks.stack.processes.stop("writes.1")
    try:
        write()
        theirs = "UPDATE jobs SET token_id = 'mem_played' WHERE workspace_id = %s AND status = 'queued' RETURNING id"
        assert len(rows(talks.stack, theirs, talks.shop.workspace_id)) == len(talks.talkers)
    finally:
        talks.stack.processes.start("writes.1")


def _write(say: Callable[..., None], word: str, talkers: list[Talker], rounds: int) -> None:
    for talker, number in interleaved(talkers, rounds):
        say(talker, f"{word}-{talker.number}-{number}")
