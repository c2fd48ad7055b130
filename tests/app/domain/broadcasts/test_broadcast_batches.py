"""Batches of broadcasts: each contact is handled once, whatever happens in between."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import count, rows
from app.domain.broadcasts import (
    broadcast_batches,
    broadcast_choices,
    broadcast_counts,
    broadcasts,
    contact_actions,
)
from tests.broadcasting import begin, later, move, outcomes, people, settle, shown, texts, work
from tests.cast import Api, one
from tests.talks import Interrupted, make_channel, receive


def test_everybody_gets_the_message_once(api: Api) -> None:
    make_channel(api.workspace_id)
    ada, bob = people(api, 2, first_name="Ada")

    broadcast = work(broadcast_id := begin(api.workspace_id))

    assert (broadcast.state, broadcast.count, broadcast.handled) == ("running", 2, 2)
    assert outcomes(broadcast_id) == {ada: "sent", bob: "sent"}
    assert texts(broadcast_id) == {ada: "Hello Ada!", bob: "Hello Ada!"}
    assert broadcasts.represent(broadcast)["waiting"] == 2

    settle(broadcast_id)
    ended = later(broadcast_id)

    assert ended.state == "done"
    told = broadcasts.represent(shown(broadcast_id))
    assert (told["sent"], told["waiting"], told["skipped"]) == (2, 0, {})
    assert told["finished_at"] is not None


def test_nobody_is_told_of_what_it_opens_and_the_end_is_an_event(api: Api) -> None:
    make_channel(api.workspace_id)
    people(api, 2)

    work(broadcast_id := begin(api.workspace_id))
    settle(broadcast_id)
    later(broadcast_id)

    kinds = [kind for (kind,) in rows("SELECT kind FROM events WHERE NOT starts_with(kind, 'contact.')")]
    assert kinds == ["broadcast.finished"]
    assert {status for (status,) in rows("SELECT status FROM conversations")} == {"closed"}


def test_one_for_nobody_is_done_at_once(api: Api) -> None:
    broadcast = work(
        begin(api.workspace_id, filter={"field": "contact.email", "is": "equals", "value": "no@body.example"})
    )
    assert (broadcast.state, broadcast.count, broadcast.problem) == ("done", 0, None)


def test_contacts_who_come_later_are_not_in_it(api: Api) -> None:
    make_channel(api.workspace_id)
    [ada] = people(api, 1)
    broadcast_id = begin(api.workspace_id)
    api.contact(phone="+49301234567")

    assert work(broadcast_id).count == 1
    assert outcomes(broadcast_id) == {ada: "sent"}


def test_a_canary_reaches_one_and_waits(api: Api) -> None:
    make_channel(api.workspace_id)
    first, *others = people(api, 4)
    opted_out = api.contact(phone="+49305000000")["id"]
    assert opted_out == first
    api.done(api.patch(f"contacts/{first}", {"opted_out": True}))

    broadcast = work(broadcast_id := begin(api.workspace_id, canary=True))

    assert (broadcast.state, broadcast.due_at, broadcast.wakes_at) == ("canary", None, None)
    assert outcomes(broadcast_id) == {first: "opted_out", others[0]: "sent"}

    assert move(broadcast_id, "continue") is None
    work(broadcast_id)
    assert outcomes(broadcast_id) == {first: "opted_out", **dict.fromkeys(others, "sent")}


def test_a_limit_is_kept(api: Api) -> None:
    make_channel(api.workspace_id)
    people(api, 5)

    broadcast = work(broadcast_id := begin(api.workspace_id, per_second=2))
    assert (broadcast.handled, broadcast.wakes_at is not None) == (1, True)

    later(broadcast_id, seconds=0.6)
    assert 1 < len(outcomes(broadcast_id)) <= 3


def test_what_is_under_way_is_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_actions, "MOST_UNDER_WAY", 2)
    make_channel(api.workspace_id)
    people(api, 5)

    work(broadcast_id := begin(api.workspace_id))
    assert len(outcomes(broadcast_id)) == 2

    settle(broadcast_id)
    later(broadcast_id)
    assert len(outcomes(broadcast_id)) == 4


def test_a_pause_holds_and_an_end_ends_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast_batches, "BATCH", 2)
    make_channel(api.workspace_id)
    people(api, 5)
    broadcast_id = begin(api.workspace_id, per_second=1)
    work(broadcast_id)

    assert move(broadcast_id, "pause") is None
    assert later(broadcast_id).handled == 1
    assert move(broadcast_id, "continue") is None
    work(broadcast_id)
    assert shown(broadcast_id).handled == 2
    assert move(broadcast_id, "abort") is None

    assert later(broadcast_id).state == "aborted"
    assert one("SELECT count(*) FROM broadcast_parts") == 0
    assert one("SELECT count(*) FROM events WHERE kind = 'broadcast.finished'") == 1
    problem = move(broadcast_id, "continue")
    assert problem is not None
    assert problem["detail"] == "This broadcast is aborted."


@pytest.mark.parametrize("dies", ["write_down", "reach", "save"])
def test_a_batch_that_dies_leaves_nothing_behind(api: Api, monkeypatch: pytest.MonkeyPatch, dies: str) -> None:
    make_channel(api.workspace_id)
    found = people(api, 3)
    broadcast_id = begin(api.workspace_id)

    def die(*_: Any) -> None:
        raise Interrupted

    with monkeypatch.context() as patched:
        target = {"write_down": broadcast_choices.add, "reach": broadcast_counts.add, "save": broadcast_batches._save}[
            dies
        ]
        patched.setattr(f"{target.__module__}.{target.__name__}", lambda *_, **__: die())
        with pytest.raises(Interrupted):
            work(broadcast_id)
        assert outcomes(broadcast_id) == {}
        assert one("SELECT count(*) FROM messages") == 0

    count("UPDATE broadcasts SET leased_until = NULL")
    work(broadcast_id)
    assert outcomes(broadcast_id) == dict.fromkeys(found, "sent")
    assert one("SELECT count(*) FROM messages") == 3


def test_a_fault_of_ours_skips_one_contact(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    make_channel(api.workspace_id)
    ada, bob = people(api, 2)
    reach = contact_actions.SendMessage.reach

    def fail(self: Any, contact_id: str, unit: Any) -> Any:
        if contact_id == ada:
            raise ZeroDivisionError
        return reach(self, contact_id, unit)

    monkeypatch.setattr(contact_actions.SendMessage, "reach", fail)
    work(broadcast_id := begin(api.workspace_id))

    assert outcomes(broadcast_id) == {ada: "error", bob: "sent"}


def test_replies_are_counted_for_a_week(api: Api) -> None:
    channel_id = make_channel(api.workspace_id)
    ada, bob = people(api, 2)
    work(broadcast_id := begin(api.workspace_id))

    receive(api.workspace_id, ada, channel_id, "Yes")
    receive(api.workspace_id, ada, channel_id, "Please")
    count("UPDATE broadcast_rows SET at = at - interval '8 days' WHERE contact_id = %s", (bob,))
    receive(api.workspace_id, bob, channel_id, "Late")

    assert broadcasts.represent(shown(broadcast_id))["replied"] == 1
    replied = [row for (row,) in rows("SELECT contact_id FROM broadcast_rows WHERE replied_at IS NOT NULL")]
    assert replied == [ada]


def test_what_is_counted_is_folded_without_a_difference(api: Api) -> None:
    make_channel(api.workspace_id)
    people(api, 3)
    work(broadcast_id := begin(api.workspace_id))
    settle(broadcast_id)
    count("UPDATE messages SET status = 'read' WHERE id = (SELECT min(id) FROM messages)")
    count(
        """
        UPDATE messages SET status = 'failed', failure = '{"code": "blocked"}'
        WHERE id = (SELECT max(id) FROM messages)
        """
    )
    before = broadcasts.represent(shown(broadcast_id))

    assert broadcast_counts.fold() > 0

    assert (before["sent"], before["delivered"], before["read"]) == (2, 1, 1)
    assert (before["failed"], before["failures"]) == (1, {"blocked": 1})
    assert broadcasts.represent(shown(broadcast_id)) == before
    assert one("SELECT count(*) FROM broadcast_deltas") == 0


def test_old_ones_are_forgotten(api: Api) -> None:
    make_channel(api.workspace_id)
    people(api, 2)
    running, old = begin(api.workspace_id), begin(api.workspace_id)
    for each in (old, running):
        work(each)
        settle(each)
    later(old)
    count("UPDATE broadcasts SET created_at = created_at - interval '400 days'")

    while broadcasts.forget_old(limit=1):
        pass

    assert [row for (row,) in rows("SELECT id FROM broadcasts")] == [running]
    assert {row for (row,) in rows("SELECT broadcast_id FROM broadcast_rows")} == {running}
    assert {row for (row,) in rows("SELECT broadcast_id FROM broadcast_deltas")} == {running}
