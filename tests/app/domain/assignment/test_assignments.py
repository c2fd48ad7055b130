"""The rule of balanced channels: who gets a conversation, when, and never more than they take."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.database import rows
from app.domain.assignment import assignments
from scheduler.timetable import Timetable
from tests.app.domain.assignment.balancing import (
    assign_all,
    assignee,
    assignees,
    make_balanced,
    set_member,
    set_rule,
    wait_in,
)
from tests.cast import Api, event_bodies, one
from tests.talks import make_channel, make_member, receive


def test_the_member_with_the_fewest_gets_it_and_of_several_who_got_one_longest_ago(
    api: Api, workspace_id: str, channel_id: str, close: Callable[[str], object]
) -> None:
    ada, bob, cy = (make_member(workspace_id) for _ in range(3))
    talks = wait_in(api, channel_id, "a", "b", "c", "d")
    assert assign_all() == 4
    assert [assignee(talk) for talk in talks] == [ada, bob, cy, ada]

    close(talks[1])
    close(talks[0])
    late = wait_in(api, channel_id, "e", "f", "g", "h")
    assert assign_all() == 4

    # Bob has none. Then each has one, and Cy got theirs before Ada and Bob did.
    assert [assignee(talk) for talk in late] == [bob, cy, ada, bob]


def test_those_of_one_batch_are_spread_like_those_of_many(api: Api, workspace_id: str, channel_id: str) -> None:
    members = [make_member(workspace_id) for _ in range(3)]
    wait_in(api, channel_id, *"abcdefg")

    assert assignments.assign_some("") == ("", 7)

    assert assignees() == [*members, *members, members[0]]


def test_nobody_gets_more_than_they_take_and_the_longest_waiting_comes_next(
    api: Api, workspace_id: str, channel_id: str, close: Callable[[str], object]
) -> None:
    member_id = make_member(workspace_id)
    set_member(member_id, capacity=1)
    first, second, third = wait_in(api, channel_id, "a", "b", "c")
    receive(workspace_id, one("SELECT contact_id FROM conversations WHERE id = %s", second), channel_id)

    assert (assign_all(), assignees()) == (1, [member_id, None, None])
    close(first)
    assert (assign_all(), assignees()) == (1, [member_id, member_id, None])
    assert assignee(third) is None


def test_it_stays_unassigned_until_somebody_is_available(api: Api, workspace_id: str, channel_id: str) -> None:
    member_id = make_member(workspace_id)
    set_member(member_id, availability="away")
    [talk] = wait_in(api, channel_id, "a")
    assert (assign_all(), assignee(talk)) == (0, None)

    set_member(member_id, availability="available")

    assert (assign_all(), assignee(talk)) == (1, member_id)


def test_a_new_member_is_room(api: Api, workspace_id: str, channel_id: str) -> None:
    [talk] = wait_in(api, channel_id, "a")
    assert assign_all() == 0

    member_id = make_member(workspace_id)

    assert (assign_all(), assignee(talk)) == (1, member_id)


def test_another_setting_is_room(api: Api, workspace_id: str) -> None:
    away, member_id = make_member(workspace_id), make_member(workspace_id)
    set_member(away, availability="away")
    channel_id = make_balanced(workspace_id, member_ids=[away])
    [talk] = wait_in(api, channel_id, "a")
    assert assign_all() == 0

    set_rule(channel_id, member_ids=None)

    assert (assign_all(), assignee(talk)) == (1, member_id)


def test_a_raised_capacity_is_room(api: Api, workspace_id: str, channel_id: str) -> None:
    member_id = make_member(workspace_id)
    set_member(member_id, capacity=0)
    wait_in(api, channel_id, "a", "b")
    assert assign_all() == 0

    set_member(member_id, capacity=None)

    assert assign_all() == 2


def test_only_members_whom_the_channel_names_get_its_conversations(api: Api, workspace_id: str) -> None:
    _, named = make_member(workspace_id), make_member(workspace_id)
    channel_id = make_balanced(workspace_id, member_ids=[named])
    wait_in(api, channel_id, "a", "b")

    assert (assign_all(), assignees()) == (2, [named, named])


def test_the_queues_of_a_channel_without_room_hold_up_no_other(
    api: Api, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignments, "PART", 2)
    full, free = make_member(workspace_id), make_member(workspace_id)
    set_member(full, capacity=0)
    wait_in(api, make_balanced(workspace_id, member_ids=[full]), "a", "b", "c")
    theirs = wait_in(api, make_balanced(workspace_id, member_ids=[free]), "d", "e", "f")

    assert assign_all() == 3
    assert {assignee(talk) for talk in theirs} == {free}


def test_channels_without_the_rule_and_deleted_ones_are_left_alone(api: Api, workspace_id: str) -> None:
    make_member(workspace_id)
    plain, none, gone = make_channel(workspace_id), make_channel(workspace_id), make_balanced(workspace_id)
    set_rule(none, "none")
    for number, channel_id in enumerate((plain, none, gone)):
        wait_in(api, channel_id, f"c-{number}")
    rows("UPDATE channels SET deleted_at = now() WHERE id = %s", (gone,))

    assert (assign_all(), set(assignees())) == (0, {None})
    set_rule(plain)
    assert assign_all() == 1


def test_members_of_others_get_nothing(api: Api, others: Api, channel_id: str) -> None:
    theirs = make_member(others.workspace_id)
    [talk] = wait_in(api, channel_id, "a")
    assert (assign_all(), assignee(talk)) == (0, None)

    set_rule(channel_id, member_ids=[theirs])

    assert (assign_all(), assignee(talk)) == (0, None)


def test_a_conversation_is_assigned_when_it_wakes(
    api: Api, workspace_id: str, channel_id: str, contact_id: str
) -> None:
    make_member(workspace_id)
    receive(workspace_id, contact_id, channel_id)
    rows("UPDATE conversations SET snoozed_until = now() + interval '1 hour'")
    assert assign_all() == 0

    receive(workspace_id, contact_id, channel_id)

    assert assign_all() == 1


def test_one_that_is_opened_again_stays_with_its_assignee(
    api: Api, workspace_id: str, channel_id: str, close: Callable[[str], object]
) -> None:
    first, second = make_member(workspace_id), make_member(workspace_id)
    [talk] = wait_in(api, channel_id, "a")
    assign_all()
    close(talk)
    set_member(first, capacity=0)

    api.done(api.patch(f"conversations/{talk}", {"status": "open"}))
    assert (assign_all(), assignee(talk)) == (0, first)

    api.done(api.patch(f"conversations/{talk}", {"assignee_id": None}))
    assert (assign_all(), assignee(talk)) == (1, second)


def test_the_event_says_that_the_rule_did_it(api: Api, workspace_id: str, channel_id: str) -> None:
    member_id = make_member(workspace_id)
    wait_in(api, channel_id, "a")
    assign_all()

    body = event_bodies(workspace_id)[-1]

    assert (body["kind"], body["data"]["conversation"]["assignee_id"]) == ("conversation.assigned", member_id)
    assert body["data"]["assigned_by"] == {"type": "rule", "id": channel_id}


def test_those_who_wait_for_an_answer_come_before_those_who_do_not(
    api: Api, workspace_id: str, channel_id: str
) -> None:
    member_id = make_member(workspace_id)
    set_member(member_id, capacity=1)
    answered, waiting = wait_in(api, channel_id, "a", "b")
    rows("UPDATE conversations SET waiting_since = NULL WHERE id = %s", (answered,))

    assert (assign_all(), assignee(waiting)) == (1, member_id)


def test_a_call_looks_at_some_channels_and_the_next_one_goes_on(
    api: Api, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignments, "MOST_CHANNELS", 1)
    make_member(workspace_id)
    first, second = make_balanced(workspace_id), make_balanced(workspace_id)
    wait_in(api, first, "a")
    wait_in(api, second, "b")

    assert assignments.assign_some("") == (first, 1)
    assert assignments.assign_some(first) == (second, 1)
    assert assignments.assign_some(second) == ("", 0)


def test_the_scheduler_assigns_where_a_channel_has_the_rule_and_rests_where_none_has(
    api: Api, workspace_id: str, statements: list[str]
) -> None:
    timetable, member_id = Timetable(), make_member(workspace_id)
    timetable.passes = [each for each in timetable.passes if each.name == "assignments"]
    channel_id = make_channel(workspace_id)
    [talk] = wait_in(api, channel_id, "a")
    statements.clear()
    timetable.run_due()
    assert (len(statements), assignee(talk)) == (1, None)

    set_rule(channel_id)
    timetable.passes[0].due = 0
    timetable.run_due()

    assert assignee(talk) == member_id


def test_queues_are_found_by_indexes(
    api: Api, workspace_id: str, channel_id: str, scanned: list[tuple[str, str]]
) -> None:
    make_member(workspace_id)
    wait_in(api, channel_id, "a")
    rows(
        """
        INSERT INTO conversations (id, workspace_id, contact_id, channel_id, status, waiting_since)
        SELECT 'cnv_' || n, workspace_id, contact_id, 'chn_other',
            CASE WHEN n %% 2 = 0 THEN 'open' ELSE 'closed' END, now()
        FROM conversations, generate_series(1, %s) AS n RETURNING 1
        """,
        (20_000,),
    )
    rows("ANALYZE conversations")
    scanned.clear()

    assert assign_all() == 1

    assert scanned == []
    plan = str(rows(f"EXPLAIN {assignments._QUEUE}", {"channels": "{" + channel_id + "}", "part": 50}))
    assert "conversations_queue" in plan
