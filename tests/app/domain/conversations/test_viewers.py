"""Who looks at a conversation, for as long as they say so."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from app import bells, bounds, realtime
from app.domain.conversations import viewers
from app.models.conversations import Conversation
from app.realtime import Sign
from tests.cast import one
from tests.talks import receive

ADA, BOB = ({"type": "member", "id": name} for name in ("mem_ada", "mem_bob"))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Sign]:
    seen: list[Sign] = []
    monkeypatch.setattr(realtime, "show", seen.append)
    return seen


@pytest.fixture
def talk(workspace_id: str, contact_id: str, channel_id: str, shown: list[Sign]) -> Conversation:
    return Conversation.get_by_id(receive(workspace_id, contact_id, channel_id).conversation_id)


def who(talk: Conversation) -> list[Any]:
    return [each["author"] for each in viewers.of(talk)]


def test_it_is_shown_and_can_be_read_until_it_ends(talk: Conversation, shown: list[Sign]) -> None:
    viewers.look(talk, BOB)
    bells.flags().zadd(f"viewers:{talk.id}", {"member:mem_bob": 1})
    viewers.look(talk, ADA)

    _, ada = shown
    assert (ada.kind, ada.author_id, ada.channel_id, ada.peer) == ("presence", "mem_ada", None, None)
    assert {name: ada.data[name] for name in ("conversation_id", "author", "member_ids", "online")} == {
        "conversation_id": talk.id,
        "author": ADA,
        "member_ids": ["mem_ada"],
        "online": True,
    }
    [viewer] = viewers.of(talk)
    assert (viewer["author"], realtime.timestamp(viewer["until"])) == (ADA, ada.data["until"])


def test_who_says_so_again_at_once_is_not_shown_again(
    talk: Conversation, shown: list[Sign], monkeypatch: pytest.MonkeyPatch
) -> None:
    viewers.look(talk, ADA)
    viewers.look(talk, ADA)
    assert len(shown) == 1

    monkeypatch.setattr(viewers, "SHOWN_EVERY_SECONDS", 0)
    viewers.look(talk, ADA)

    assert (len(shown), who(talk)) == (2, [ADA])


@pytest.mark.parametrize("name", ["VIEWERS_PER_CONVERSATION", "VIEWERS_PER_WORKSPACE"])
def test_no_more_are_shown_than_may_look(
    talk: Conversation, shown: list[Sign], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = getattr(bounds, name)
    monkeypatch.setattr(bounds, name, bounds.Bound(bound.name, 1, bound.unit))

    viewers.look(talk, ADA)
    viewers.look(talk, BOB)

    assert (len(shown), who(talk)) == (1, [ADA])


def test_nothing_is_stored_in_the_database(talk: Conversation) -> None:
    before = one("SELECT count(*) FROM updates")

    viewers.look(talk, ADA)

    assert one("SELECT count(*) FROM updates") == before
    assert {bells.flags().ttl(key) for key in bells.flags().scan_iter("viewers:*")} <= {29, 30}


def test_without_redis_nobody_is_shown_and_nothing_raised(
    talk: Conversation, shown: list[Sign], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        def register_script(self, _: str) -> Any:
            raise redis.ConnectionError("away")

        time = zrangebyscore = register_script

    monkeypatch.setattr(bells, "flags", Away)
    viewers.look(talk, ADA)

    assert shown == []


def test_nobody_is_known_while_redis_is_away(talk: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def time(self) -> Any:
            raise redis.ConnectionError("away")

    viewers.look(talk, ADA)
    monkeypatch.setattr(bells, "flags", Away)

    assert viewers.of(talk) == []
