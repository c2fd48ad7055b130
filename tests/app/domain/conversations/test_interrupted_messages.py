"""Interrupted messages: what becomes of one whose worker died when its channel is not connected."""

from __future__ import annotations

import pytest

from app.channels.base import Outcome, Verdict
from app.database import rows
from app.domain.channels import channels
from app.domain.conversations import message_endings, sending_outcomes, sendings
from app.domain.conversations.sendings import Dispatch, Sending
from app.models.conversations import Message
from tests.cast import Api, elsewhere, one
from tests.posts import make_post, open_talk, post, status_of

PROBLEM = {"code": "401", "detail": "Unauthorized"}


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_post(api.workspace_id)


def stop(channel_id: str) -> None:
    channels.require_reauthorization(channel_id, PROBLEM)


def let_leases_end() -> None:
    rows("UPDATE messages SET leased_until = now() - interval '1 second' WHERE leased_until IS NOT NULL")
    rows("UPDATE channels SET stopped_at = stopped_at - interval '10 minutes'")


def claimed(channel_id: str) -> Dispatch:
    [dispatch] = sendings.claim({channel_id: 1}).dispatches
    return dispatch


def test_what_a_dead_worker_was_sending_is_unknown_though_its_channel_is_not_connected(
    api: Api, channel_id: str
) -> None:
    first, second = post(open_talk(api, channel_id), "one", "two")
    claimed(channel_id)
    stop(channel_id)
    let_leases_end()

    assert message_endings.settle_interrupted() == 1

    assert (status_of(first), Message.get_by_id(first).failure["code"]) == ("unknown", "interrupted")
    assert status_of(second) == "queued"
    assert one("SELECT due_at IS NOT NULL FROM messages WHERE id = %s", second)


def test_a_channel_is_looked_into_until_nothing_is_left(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "one")
    claimed(channel_id)
    stop(channel_id)
    let_leases_end()

    settled = [message_endings.settle_interrupted() for _ in range(2)]

    assert settled == [1, 0]
    assert one("SELECT stopped_at FROM channels") is None


def test_what_a_worker_is_still_sending_is_left_to_it(api: Api, channel_id: str) -> None:
    [message_id] = post(open_talk(api, channel_id), "one")
    dispatch = claimed(channel_id)
    stop(channel_id)

    assert message_endings.settle_interrupted() == 0

    sending_outcomes.record([Sending(dispatch.claimed, dispatch.conversation_id, Verdict(Outcome.SENT))])
    assert status_of(message_id) == "sent"


def test_a_worker_that_was_only_frozen_changes_nothing_any_more(api: Api, channel_id: str) -> None:
    [message_id] = post(open_talk(api, channel_id), "one")
    dispatch = claimed(channel_id)
    stop(channel_id)
    let_leases_end()
    message_endings.settle_interrupted()

    sending_outcomes.record([Sending(dispatch.claimed, dispatch.conversation_id, Verdict(Outcome.SENT))])

    assert status_of(message_id) == "unknown"


def test_a_locked_conversation_is_settled_later(api: Api, channel_id: str) -> None:
    [message_id] = post(open_talk(api, channel_id), "one")
    claimed(channel_id)
    stop(channel_id)
    let_leases_end()

    with elsewhere(lambda: rows("SELECT 1 FROM conversations FOR UPDATE")):
        assert message_endings.settle_interrupted() == 0
    assert message_endings.settle_interrupted() == 1

    assert status_of(message_id) == "unknown"


def test_in_a_connected_channel_claims_do_it(api: Api, channel_id: str) -> None:
    post(open_talk(api, channel_id), "one")
    claimed(channel_id)
    stop(channel_id)
    channels.set_state(channel_id, "connected")
    let_leases_end()

    assert message_endings.settle_interrupted() == 0
    assert [each.verdict.code for each in sendings.claim({channel_id: 1}).settled] == ["interrupted"]
