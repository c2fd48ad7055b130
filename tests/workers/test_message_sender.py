from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from peewee import OperationalError

from app import database
from app.channels.base import Rate
from app.database import rows
from app.domain.conversations import sending_outcomes, sendings
from app.mailbox import Found
from app.models.conversations import Conversation, Message
from tests.arriving import process
from tests.cast import Api, all_of, event_bodies, event_kinds, one, rung_on, until
from tests.conftest import Servers
from tests.posts import AUTOMATION, make_post, open_talk, post, status_of
from tests.stack.receiver import Answer, Received, Receiver
from tests.wires import WIRE
from workers import dispatcher
from workers.message_sender import MessageSender


@pytest.fixture
def courier(empty: None, provider: Receiver) -> Iterator[MessageSender]:
    # It ends before the provider forgets what it got.
    made = MessageSender()
    yield made
    made.stop()
    database.database.close()


@pytest.fixture
def channel_id(api: Api, provider: Receiver) -> str:
    return make_post(api.workspace_id, provider.url("/send"))


def text_of(received: Received) -> str:
    return str(json.loads(received.body)["text"])


def texts(provider: Receiver) -> list[str]:
    return [text_of(received) for received in provider.received]


def statuses() -> Counter[str]:
    return Counter(all_of("SELECT status FROM messages WHERE direction = 'out'"))


def answering(**by_text: Answer | int) -> Callable[[str, bytes], Answer | int]:
    """Answers each text in its own way, and others with 200."""
    return lambda path, body: by_text.get(json.loads(body)["text"], 200)


def test_a_message_reaches_the_provider_and_is_sent(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    provider.answers["/send"] = Answer(200, b"wamid.1")
    [message_id] = post(open_talk(api, channel_id), "Hello")

    courier.wake(channel_id)
    until(lambda: status_of(message_id) == "sent")

    [received] = provider.received
    assert json.loads(received.body) == {"to": "ada", "text": "Hello", "message": message_id, "file": None}
    assert received.headers["Authorization"] == "good"
    stored = Message.get_by_id(message_id)
    assert (stored.provider_id, stored.failure, stored.due_at, stored.leased_until) == ("wamid.1", None, None, None)
    data = event_bodies(api.workspace_id)[-1]["data"]
    assert event_kinds(api.workspace_id)[-1] == "message.sent"
    assert (data["message"]["id"], data["message"]["status"]) == (message_id, "sent")
    assert data["contact"]["id"] == stored.contact_id
    assert data["conversation"]["id"] == stored.conversation_id


def test_every_conversation_gets_its_messages_in_order_and_once(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    talks = [open_talk(api, channel_id, str(number)) for number in range(10)]
    for number in range(5):
        for talk in talks:
            post(talk, f"{number}")

    courier.wake(channel_id)
    until(lambda: statuses()["sent"] == 50)

    got: dict[str, list[str]] = {}
    for received in provider.received:
        got.setdefault(json.loads(received.body)["to"], []).append(text_of(received))
    assert got == {str(number): ["0", "1", "2", "3", "4"] for number in range(10)}


def test_a_refusal_is_final_and_does_not_block(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    provider.behaviour = answering(bad=Answer(400, b"No such chat\0."))
    bad, good = post(open_talk(api, channel_id), "bad", "good")

    courier.wake(channel_id)
    until(lambda: status_of(good) == "sent")

    assert texts(provider) == ["bad", "good"]
    assert Message.get_by_id(bad).failure == {"code": "400", "detail": "No such chat."}
    assert event_kinds(api.workspace_id)[-2:] == ["message.failed", "message.sent"]


@pytest.mark.parametrize("external_id", ["ada", "DE.42"], ids=["known by the address", "known by another identifier"])
def test_a_contact_that_has_blocked_us_is_opted_out_and_gets_nothing_more(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, external_id: str
) -> None:
    provider.answers["/send"] = 403
    talk = open_talk(api, channel_id)
    rows(
        """
        INSERT INTO identities (id, workspace_id, contact_id, channel_kind, external_id, address)
        SELECT 'idn_1', workspace_id, id, 'test', %s, 'test:' || %s FROM contacts
        """,
        (external_id, external_id),
    )
    first, second = post(talk, "one", "two")
    courier.wake(channel_id)
    until(lambda: status_of(second) == "failed")

    while process():
        pass

    assert one("SELECT opted_out FROM contacts")
    assert Message.get_by_id(first).failure == {"code": "blocked", "detail": "The contact has blocked the shop."}
    assert {"message.failed", "contact.updated"} <= set(event_kinds(api.workspace_id))
    [third] = post(talk, "three")
    assert Message.get_by_id(third).failure["code"] == "opted_out"


@pytest.mark.parametrize("answer", [Answer(close=True), Answer(500)], ids=["cut", "500"])
def test_what_may_have_arrived_is_unknown_and_never_sent_again(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, answer: Answer
) -> None:
    provider.behaviour = answering(lost=answer)
    lost, good = post(open_talk(api, channel_id), "lost", "good")

    courier.wake(channel_id)
    until(lambda: status_of(good) == "sent")

    assert status_of(lost) == "unknown"
    assert texts(provider) == ["lost", "good"]
    assert event_kinds(api.workspace_id)[-1:] == ["message.sent"]


def test_a_provider_that_hangs_makes_its_messages_unknown_and_delays_no_other_channel(
    api: Api,
    courier: MessageSender,
    provider: Receiver,
    channel_id: str,
    released: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sendings, "TIMEOUT_SECONDS", 1.0)
    provider.answers["/hangs"] = Answer(released=released)
    hanging_id = make_post(api.workspace_id, provider.url("/hangs"))
    hung = [post(open_talk(api, hanging_id, str(number)), "Hello")[0] for number in range(30)]
    courier.wake(hanging_id)
    until(lambda: provider.counts["/hangs"])
    [message_id] = post(open_talk(api, channel_id), "Hello")

    courier.wake(channel_id)

    until(lambda: status_of(message_id) == "sent")
    until(lambda: any(status_of(each) == "unknown" for each in hung))


def test_a_provider_that_is_away_gets_its_messages_when_it_is_back(
    api: Api, courier: MessageSender, servers: Servers
) -> None:
    away = Receiver(Path(servers.certificates.ca_file).parent)
    channel_id = make_post(api.workspace_id, away.url("/send"))
    post(open_talk(api, channel_id), "one", "two")
    courier.wake(channel_id)
    until(lambda: one("SELECT paused_until FROM channels"))

    away.start()

    until(lambda: statuses()["sent"] == 2)
    assert texts(away) == ["one", "two"]
    away.stop()


def test_a_throttle_pauses_the_channel_or_the_conversation(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    throttle = {"seconds": 60, "of": "conversation"}
    provider.behaviour = answering(slow=Answer(429, json.dumps(throttle).encode()))
    slow, _ = post(open_talk(api, channel_id, "ada"), "slow", "behind")
    courier.wake(channel_id)
    until(lambda: one("SELECT due_at > now() FROM messages WHERE id = %s", slow))
    [other] = post(open_talk(api, channel_id, "bob"), "other")

    courier.wake(channel_id)

    until(lambda: status_of(other) == "sent")
    assert texts(provider) == ["slow", "other"]
    assert one("SELECT paused_until FROM channels") is None
    throttle["of"] = "channel"
    provider.behaviour = answering(slow=Answer(429, json.dumps(throttle).encode()))
    post(open_talk(api, channel_id, "eve"), "slow")
    courier.wake(channel_id)
    until(lambda: one("SELECT paused_until > now() + interval '50 seconds' FROM channels"))


def test_refused_credentials_stop_the_channel_and_new_ones_let_everything_out(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    provider.answers["/send"] = 401
    talk = open_talk(api, channel_id)
    post(talk, "one", "two")
    courier.wake(channel_id)
    until(lambda: one("SELECT state FROM channels") == "reauthorization_required")
    until(lambda: statuses() == {"queued": 2})
    assert one("SELECT problem FROM channels") == {"code": "401", "detail": "The token is not accepted."}
    assert event_kinds(api.workspace_id)[-1] == "channel.reauthorization_required"
    provider.answers["/send"] = 200
    rows("UPDATE channels SET state = 'connected', problem = NULL")

    courier.wake(channel_id)

    until(lambda: statuses() == {"sent": 2})
    assert texts(provider) == ["one", "one", "two"]


def test_rates_hold_over_processes(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "channel_rate", Rate(50))
    others = [MessageSender() for _ in range(3)]
    for number in range(60):
        post(open_talk(api, channel_id, str(number)), "Hello")

    for each in (courier, *others):
        each.wake(channel_id)
    until(lambda: statuses()["sent"] == 60)

    for each in others:
        each.stop()
    took = max(received.at for received in provider.received) - min(received.at for received in provider.received)
    # 5 at once, and the rest a fiftieth of a second apart.
    assert took > 55 / 50 * 0.9
    assert len(provider.received) == 60


def test_people_are_answered_before_a_campaign_goes_on(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(WIRE), "channel_rate", Rate(20))
    for number in range(40):
        post(open_talk(api, channel_id, str(number)), "campaign", author=AUTOMATION)
    courier.wake(channel_id)
    until(lambda: provider.counts["/send"])
    [message_id] = post(open_talk(api, channel_id, "ada"), "person", author={"type": "member", "id": "mem_1"})

    until(lambda: status_of(message_id) == "sent")

    assert statuses()["queued"] > 0


def test_before_it_ends_everything_under_way_is_recorded_and_the_rest_is_left_to_others(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, released: threading.Event
) -> None:
    provider.answers["/send"] = Answer(released=released)
    for number in range(20):
        post(open_talk(api, channel_id, str(number)), "Hello")
    courier.wake(channel_id)
    until(lambda: provider.counts["/send"])
    stopping = threading.Thread(target=courier.stop)
    stopping.start()

    released.set()
    stopping.join(20)

    assert not stopping.is_alive()
    assert statuses() == {"sent": provider.counts["/send"], "queued": 20 - provider.counts["/send"]}
    assert all_of("SELECT DISTINCT leased_until FROM messages") == [None]
    assert set(rung_on("messages")) == {channel_id}


def test_what_was_claimed_and_not_begun_is_queued_again(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = sendings.claim

    def claim_and_stop(rooms: dict[str, int]) -> Found[sendings.Dispatch, sendings.Sending]:
        courier.is_stopping.set()
        return claim(rooms)

    monkeypatch.setattr(sendings, "claim", claim_and_stop)
    [message_id] = post(open_talk(api, channel_id), "Hello")

    courier.wake(channel_id)
    until(lambda: one("SELECT claim FROM messages"))
    courier.stop()

    assert (status_of(message_id), provider.received) == ("queued", [])
    assert one("SELECT due_at <= now() AND leased_until IS NULL FROM messages")


def test_what_does_not_end_in_time_before_it_ends_is_unknown(
    api: Api,
    courier: MessageSender,
    provider: Receiver,
    channel_id: str,
    released: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "GRACE_SECONDS", 0.1)
    provider.answers["/send"] = Answer(released=released)
    [message_id] = post(open_talk(api, channel_id), "Hello")
    courier.wake(channel_id)
    until(lambda: provider.counts["/send"])

    courier.stop()

    assert status_of(message_id) == "unknown"


def test_while_the_database_is_away_it_tries_again_to_record_and_sends_once(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "AWAY_SECONDS", 0.01)
    record = sending_outcomes.record
    tries: list[int] = []

    def fail_twice(outcomes: list[sendings.Sending]) -> object:
        tries.append(1)
        if len(tries) < 3:
            raise OperationalError("away")
        return record(outcomes)

    monkeypatch.setattr(sending_outcomes, "record", fail_twice)
    [message_id] = post(open_talk(api, channel_id), "Hello")

    courier.wake(channel_id)

    until(lambda: status_of(message_id) == "sent")
    assert provider.counts["/send"] == 1


def test_an_outcome_whose_conversation_is_locked_is_recorded_when_it_is_free(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    first, _ = post(open_talk(api, channel_id), "one", "two")

    with database.transaction():
        rows("SELECT id FROM conversations FOR NO KEY UPDATE")
        courier.wake(channel_id)
        until(lambda: provider.counts["/send"])
        assert status_of(first) == "sending"

    until(lambda: statuses() == {"sent": 2})
    assert texts(provider) == ["one", "two"]


def test_the_same_identifier_for_two_messages_loses_neither(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    provider.answers["/send"] = Answer(200, b"same")
    for name in ("ada", "bob"):
        post(open_talk(api, channel_id, name), "Hello")

    courier.wake(channel_id)

    until(lambda: statuses() == {"sent": 2})
    assert provider.counts["/send"] == 2
    assert Counter(all_of("SELECT provider_id FROM messages")) == {"same": 1, None: 1}
    assert Conversation.select().count() == 2


@pytest.mark.parametrize("asked", ["1e9", "1e12", "1e18", "Infinity", "NaN", "-1e12"])
def test_a_pause_that_no_calendar_has_delays_only_its_channel_and_for_an_hour(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, asked: str
) -> None:
    body = f'{{"seconds": {asked}, "of": "channel"}}'.encode()
    provider.behaviour = answering(first=Answer(429, body))
    [message_id] = post(open_talk(api, channel_id), "first")
    courier.wake(channel_id)
    until(lambda: status_of(message_id) == "queued" and one("SELECT paused_until FROM channels") is not None)

    other = make_post(api.workspace_id, provider.url("/send"))
    [theirs] = post(open_talk(api, other, "bob"), "theirs")
    courier.wake(other)

    until(lambda: status_of(theirs) == "sent")
    assert one("SELECT max(paused_until) <= now() + interval '1 hour' FROM channels")


def test_a_pause_of_years_that_is_stored_already_holds_nothing_up(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    rows("UPDATE channels SET paused_until = '33000-01-01'")
    [message_id] = post(open_talk(api, channel_id), "Hello")

    courier.wake(channel_id)

    until(lambda: status_of(message_id) == "sent")


def test_a_message_whose_identifier_cannot_be_stored_is_sent_all_the_same(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str
) -> None:
    provider.answers["/send"] = Answer(200, b"wamid\0.1")
    [message_id] = post(open_talk(api, channel_id), "Hello")

    courier.wake(channel_id)

    until(lambda: status_of(message_id) == "sent")


def test_a_message_whose_outcome_cannot_be_recorded_is_unknown(
    api: Api, courier: MessageSender, provider: Receiver, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = sending_outcomes.record

    def refuse(outcomes: Sequence[sendings.Sending]) -> tuple[list[sendings.Sending], dict[str, float]]:
        if any(each.verdict.provider_id == "refused" for each in outcomes):
            raise ValueError
        return recorded(outcomes)

    monkeypatch.setattr(sending_outcomes, "record", refuse)
    provider.answers["/send"] = Answer(200, b"refused")
    [message_id] = post(open_talk(api, channel_id), "Hello")

    courier.wake(channel_id)

    until(lambda: status_of(message_id) == "unknown")
