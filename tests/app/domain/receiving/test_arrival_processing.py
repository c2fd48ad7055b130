"""Receptions: what has arrived is processed once, each sender's in its order, and holds up nobody else."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from typing import Any

import pytest

from app import mailbox
from app.channels.inbound import Blocked, Edited, Media, Receipt
from app.database import rows
from app.domain.channels import arrivals, fetches
from app.domain.conversations import messages
from app.domain.receiving import arrival_effects, arrival_processing
from app.domain.receiving.arrival_processing import MOST_DEATHS, MOST_ERRORS
from app.domain.retention import delete_old
from app.lib import ids
from app.models import sets
from app.models.arrivals import Arrival as Stored
from app.models.channels import Channel
from app.models.contacts import Contact
from tests.arriving import AT, arrive, echoed, make_post, process, receipt, received
from tests.cast import Api, all_of, elsewhere, in_another_process, in_threads, one, until


@pytest.fixture
def channel(workspace_id: str) -> Channel:
    return make_post(workspace_id)


def due_again() -> None:
    rows("UPDATE arrivals SET due_at = now(), next_attempt_at = NULL WHERE due_at > now() OR next_attempt_at > now()")
    process()


def work_off(sender_key: str) -> None:
    """Works until nothing of the sender is left, as a worker does whose bell rings again."""
    while rows("SELECT 1 FROM arrivals WHERE sender_key = %s AND due_at IS NOT NULL", (sender_key,)):
        arrival_processing.work(sender_key)


def break_on(monkeypatch: pytest.MonkeyPatch, text: str, error: Exception | None = None) -> None:
    real = messages.receive

    def receive(change: Any, contact: Any, channel_id: str, said: str, **fields: Any) -> Any:
        if said == text:
            raise error or RuntimeError("It broke.")
        return real(change, contact, channel_id, said, **fields)

    monkeypatch.setattr(messages, "receive", receive)


def test_what_is_processed_keeps_only_its_key(channel: Channel) -> None:
    arrive(channel, received("Hi", "1"))

    stored = Stored.get()
    assert (stored.key, stored.payload, stored.due_at, stored.leased_until) == ("1", None, None, None)
    assert stored.sender_key == channel.id
    assert arrivals.store(channel, [received("Hi", "1")]) == 0


def test_what_many_send_is_processed_together(channel: Channel, statements: list[str]) -> None:
    arrive(channel, *(received(f"Hi {number}", f"a{number}", f"sender-{number}") for number in range(30)))

    assert one("SELECT count(*) FROM messages") == 30
    assert one("SELECT count(*) FROM contacts") == 30
    assert len(statements) < 45


def test_the_order_of_a_sender_is_kept(channel: Channel) -> None:
    texts = [str(number) for number in range(2 * arrival_processing.BATCH + 3)]

    arrive(channel, *(received(text, text) for text in texts))

    assert all_of("SELECT text FROM messages ORDER BY id") == texts
    assert one("SELECT unread FROM conversations") == len(texts)


def test_two_messages_of_somebody_new_over_two_workers_make_one_contact(workspace_id: str) -> None:
    first, second = make_post(workspace_id), make_post(workspace_id)
    arrivals.store(first, [received("One", "1")])
    arrivals.store(second, [received("Two", "2")])

    keys = all_of("SELECT sender_key FROM arrivals")
    results = in_threads([lambda key=key: work_off(key) for key in keys for _ in range(2)])

    assert results == [None] * 4
    assert one("SELECT count(*) FROM messages") == one("SELECT count(*) FROM conversations") == 2
    assert one("SELECT count(*) FROM contacts") == one("SELECT count(*) FROM identities") == 1


def test_two_messages_at_once_on_one_channel_make_one_conversation(channel: Channel) -> None:
    webhooks = [received("One", "1"), received("Two", "2")]
    in_threads([lambda item=item: arrivals.store(channel, [item]) for item in webhooks])

    in_threads([lambda: work_off(f"{channel.id}/ada")] * 4)

    assert one("SELECT count(*) FROM messages") == 2
    assert [one(f"SELECT count(*) FROM {table}") for table in ("contacts", "identities", "conversations")] == [1, 1, 1]


def test_queued_writes_of_the_workspace_do_not_hold_up_a_message(api: Api, channel: Channel) -> None:
    rows(
        """
        INSERT INTO jobs (id, workspace_id, kind, payload, resource_type, trace_id)
        SELECT 'job_' || number, %s, 'contacts.upsert', '{"external_id": "x"}', 'contact', 'trace'
        FROM generate_series(1, 10000) AS number
        """,
        (channel.workspace_id,),
    )

    arrive(channel, received("Hi"))

    assert one("SELECT text FROM messages") == "Hi"
    assert one("SELECT count(*) FROM jobs WHERE due_at IS NOT NULL") == 10_000


def test_a_contact_that_another_transaction_has_holds_up_nobody_else(channel: Channel) -> None:
    arrive(channel, received("Hi", "1", "ada"), received("Hi", "2", "eve"))
    arrivals.store(
        channel, [received("Again", "3", "ada"), received("More", "4", "ada"), received("Again", "5", "eve")]
    )
    ada = one("SELECT contact_id FROM identities WHERE external_id = 'ada'")
    key = sets.key(Contact, channel.workspace_id, "id", ada)

    with elsewhere(lambda: sets.lock(Contact, [key])):
        process()
        assert all_of("SELECT key FROM arrivals WHERE due_at IS NOT NULL ORDER BY position") == ["3", "4"]
    process()

    assert all_of("SELECT text FROM messages WHERE contact_id = %s ORDER BY id", ada) == ["Hi", "Again", "More"]


def test_what_breaks_is_tried_again_before_what_is_behind_it(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    break_on(monkeypatch, "bad")

    arrive(channel, received("bad", "1"), received("behind", "2"), received("Hi", "3", "eve"))

    assert all_of("SELECT text FROM messages") == ["Hi"]
    assert one("SELECT errors FROM arrivals WHERE key = '1'") == 1
    assert one("SELECT due_at > now() FROM arrivals WHERE key = '1'")
    process()
    assert one("SELECT count(*) FROM messages") == 1
    monkeypatch.undo()
    due_again()
    assert all_of("SELECT text FROM messages ORDER BY id") == ["Hi", "bad", "behind"]


@pytest.mark.parametrize("table", ["messages", "conversations"])
def test_what_the_database_refuses_is_given_up_alone(channel: Channel, table: str) -> None:
    refused = "NEW.text = 'bad'" if table == "messages" else "NEW.peer = 'chat-bad'"
    rows(
        f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {refused} THEN"
        f" RAISE EXCEPTION 'no'; END IF; RETURN NEW; END $$;"
        f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    try:
        arrive(channel, received("bad", "1", "bad"), received("Hi", "2", "eve"))
        for _ in range(MOST_ERRORS):
            due_again()
    finally:
        rows(f"DROP TRIGGER refuse ON {table}; DROP FUNCTION refuse()")

    assert all_of("SELECT text FROM messages") == ["Hi"]
    [given_up] = Stored.failed(None, 10)
    assert (given_up.key, given_up.errors, given_up.due_at) == ("1", MOST_ERRORS, None)
    assert given_up.payload is not None


def test_what_is_given_up_lets_the_next_pass_and_can_be_retried(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_on(monkeypatch, "bad")
    arrive(channel, received("bad", "1"), received("behind", "2"))
    for _ in range(MOST_ERRORS):
        due_again()
    assert all_of("SELECT text FROM messages") == ["behind"]
    assert one("SELECT problem FROM arrivals WHERE key = '1'") == "RuntimeError"

    monkeypatch.undo()
    arrivals.retry()
    process()

    assert all_of("SELECT text FROM messages ORDER BY id") == ["behind", "bad"]


def test_what_kills_its_worker_is_given_up(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    arrivals.store(channel, [received("deadly", "1"), received("behind", "2")])
    real = arrival_effects.apply
    monkeypatch.setattr(
        arrival_effects,
        "apply",
        lambda change, channel, item: (die if item.key == "1" else real)(change, channel, item),
    )
    for _ in range(MOST_DEATHS + 1):
        assert in_another_process(process) == -signal.SIGKILL
        rows("UPDATE arrivals SET leased_until = now() - interval '1 second' WHERE leased_until IS NOT NULL")
    process()

    assert all_of("SELECT text FROM messages") == ["behind"]
    assert one("SELECT problem FROM arrivals WHERE key = '1'") == f"{MOST_DEATHS} workers died of it."


def test_a_worker_that_dies_in_the_middle_leaves_all_to_the_next(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrivals.store(channel, [received("One", "1"), received("Two", "2")])

    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(arrival_processing, "_record", die)
    assert in_another_process(process) == -signal.SIGKILL
    monkeypatch.undo()
    assert one("SELECT count(*) FROM messages") == 0
    rows("UPDATE arrivals SET leased_until = now() - interval '1 second'")
    process()

    assert all_of("SELECT text FROM messages ORDER BY id") == ["One", "Two"]
    assert one("SELECT sum(deaths) FROM arrivals") == 0


def test_what_cannot_be_read_is_given_up_alone(channel: Channel) -> None:
    arrivals.store(channel, [received("One", "1"), received("Two", "2"), received("Three", "3", "eve")])
    rows("UPDATE arrivals SET payload = '{\"newer\": 1}' WHERE key = '1'")

    process()
    assert all_of("SELECT text FROM messages") == ["Three"]
    for _ in range(MOST_ERRORS):
        due_again()

    assert all_of("SELECT text FROM messages ORDER BY id") == ["Three", "Two"]
    assert one("SELECT problem FROM arrivals WHERE key = '1'") == "Unreadable"


def test_the_order_is_kept_also_after_a_worker_died(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    break_on(monkeypatch, "bad")
    arrivals.store(channel, [received("bad", "1"), received("behind", "2")])
    rows("UPDATE arrivals SET leased_until = now() - interval '1 second'")

    process()

    assert one("SELECT count(*) FROM messages") == 0
    monkeypatch.undo()
    due_again()
    assert all_of("SELECT text FROM messages ORDER BY id") == ["bad", "behind"]


def test_what_comes_over_a_channel_that_was_deleted_changes_nothing(channel: Channel) -> None:
    arrivals.store(channel, [received("Hi")])
    rows("UPDATE channels SET deleted_at = now()")

    process()

    assert one("SELECT count(*) FROM contacts") == 0
    assert one("SELECT count(*) FROM arrivals WHERE due_at IS NOT NULL") == 0


def test_nothing_reads_a_whole_table(channel: Channel, scanned: list[tuple[str, str]]) -> None:
    out = echoed("Hello", "4")
    of_all_kinds = [
        received(phone="+4930123456"),
        Edited("2", "ada", "m-1", AT, "Hi!"),
        Blocked("3", "ada", AT, True),
        out,
    ]
    arrive(channel, *of_all_kinds, receipt("read", out.provider_id), receipt("read", "unknown"))
    arrive(channel, received("Again", "5", media=(Media("file"),)), receipt("read", "unknown", key="6"))
    mailbox.wake(arrivals.WAITING)
    mailbox.overdue(arrivals.MAIL, 1, 1000)
    mailbox.overdue(fetches.MAIL, 1, 1000)
    mailbox.wake(fetches.WAITING)
    delete_old("old_arrivals")
    arrivals.retry()

    assert scanned == []


# Receipts that come first


def put_out(channel: Channel, provider_id: str) -> None:
    """Sends a message in the contact's conversation."""
    talk, contact = rows("SELECT id, contact_id FROM conversations")[0]
    rows(
        """
        INSERT INTO messages (
            id, workspace_id, conversation_id, contact_id, channel_id, direction, text, status, author, provider_id)
        VALUES (%s, %s, %s, %s, %s, 'out', 'Hello', 'sent', '{"type": "api", "id": "tok_1"}', %s)
        """,
        (ids.new("msg"), channel.workspace_id, talk, contact, channel.id, provider_id),
    )


def test_a_receipt_waits_for_its_message_and_holds_up_nothing(channel: Channel) -> None:
    early: Receipt = receipt("delivered", "out-1")
    arrive(channel, early, received("Hi"))
    assert all_of("SELECT text FROM messages") == ["Hi"]
    assert one("SELECT next_attempt_at > now() AND due_at IS NULL FROM arrivals WHERE kind = 'receipt'")

    put_out(channel, "out-1")

    def is_delivered() -> bool:
        mailbox.wake_and_ring(arrivals.WAITING)
        process()
        return bool(one("SELECT status FROM messages WHERE direction = 'out'") == "delivered")

    until(is_delivered)

    assert one("SELECT count(*) FROM arrivals WHERE payload IS NOT NULL") == 0


def test_a_receipt_looks_ever_less_often_and_is_dropped_after_a_day(channel: Channel) -> None:
    arrive(channel, receipt("delivered"))
    rows("UPDATE arrivals SET created_at = now() - interval '10 minutes'")
    due_again()
    pause = one("SELECT next_attempt_at - now() FROM arrivals")
    assert timedelta(minutes=9) < pause < timedelta(minutes=11)

    rows("UPDATE arrivals SET created_at = now() - %s", (arrival_effects.RECEIPTS_KEPT,))
    due_again()

    assert one(
        "SELECT next_attempt_at IS NULL AND due_at IS NULL AND payload IS NULL AND problem IS NULL FROM arrivals"
    )
