"""The rule while others change the same rows: nobody is passed over, and no capacity is exceeded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from threading import Barrier
from typing import Any

import pytest

from app import database
from app.database import rows, transaction
from app.domain.assignment import assignments
from app.domain.conversations import conversation_counts
from tests.app.domain.assignment.balancing import assign_all, assignee, assignees, make_balanced, set_member, wait_in
from tests.cast import Api, all_of, in_threads, one
from tests.talks import make_member, receive


def test_nobody_is_passed_over_while_their_contact_is_held(api: Api, workspace_id: str, channel_id: str) -> None:
    member_id = make_member(workspace_id)
    set_member(member_id, capacity=1)
    first, second = wait_in(api, channel_id, "a", "b")
    contact_id = one("SELECT contact_id FROM conversations WHERE id = %s", first)

    with transaction():
        rows("SELECT 1 FROM contacts WHERE id = %s FOR NO KEY UPDATE", (contact_id,))
        assert in_threads([assign_all]) == [0]

    assert (assign_all(), assignee(first), assignee(second)) == (1, member_id, None)


def test_a_member_who_is_being_changed_gets_nothing_meanwhile(api: Api, workspace_id: str, channel_id: str) -> None:
    leaving, staying = make_member(workspace_id), make_member(workspace_id)
    wait_in(api, channel_id, "a", "b")

    with transaction():
        rows("UPDATE members SET availability = 'away' WHERE id = %s", (leaving,))
        assert in_threads([assign_all]) == [2]

    assert assignees() == [staying, staying]


def test_two_passes_that_count_at_the_same_moment_give_no_more_than_fits(
    api: Api, workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignments, "MOST_CHANNELS", 1)
    first, second = make_balanced(workspace_id), make_balanced(workspace_id)
    wait_in(api, first, "a", "b")
    wait_in(api, second, "c", "d")
    set_member(make_member(workspace_id), capacity=1)
    real, both = conversation_counts.of_members, Barrier(2, timeout=20)

    def count(*arguments: Any) -> dict[str, int]:
        both.wait()
        counted = real(*arguments)
        both.wait()
        return counted

    monkeypatch.setattr(conversation_counts, "of_members", count)

    results = in_threads([partial(assignments.assign_some, after) for after in ("", first)])

    assert sorted(assigned for _, assigned in results) == [0, 1]
    assert len([each for each in assignees() if each]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_however_many_assign_and_open_at_once_no_capacity_is_exceeded(
    api: Api, workspace_id: str, seed: int, close: Callable[[str], object]
) -> None:
    random, channels = Random(seed), [make_balanced(workspace_id) for _ in range(2)]
    capacities = {make_member(workspace_id): capacity for capacity in (1, 4, 6)}
    for member_id, capacity in capacities.items():
        set_member(member_id, capacity=capacity)
    contacts = [api.contact(external_id=f"c-{number}")["id"] for number in range(24)]

    for _ in range(3):
        opening = [partial(receive, workspace_id, each, random.choice(channels)) for each in contacts]
        work = [*opening, *([assign_all] * 4), *([conversation_counts.fold] * 2)]
        random.shuffle(work)
        failed = [each for each in in_threads(work) if isinstance(each, Exception)]
        assert failed == []
        assign_all()

        taken = Counter(all_of("SELECT assignee_id FROM conversations WHERE status = 'open' AND assignee_id <> ''"))
        assert taken == capacities
        for talk in random.sample(all_of("SELECT id FROM conversations WHERE assignee_id <> ''"), 5):
            close(talk)
            rows("UPDATE conversations SET assignee_id = NULL WHERE id = %s", (talk,))


def test_after_a_statement_failed_each_is_assigned_alone(
    api: Api, workspace_id: str, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = make_member(workspace_id), make_member(workspace_id)
    set_member(ada, capacity=1)
    talks = wait_in(api, channel_id, "a", "b", "c")
    real, failed = database.Database._execute, []

    def execute(self: Any, sql: Any, parameters: Any) -> Any:
        if "update_conversations" in str(sql) and not failed:
            failed.append(sql)
            return real(self, "SELECT 1 / 0", None)
        return real(self, sql, parameters)

    monkeypatch.setattr(database.Database, "_execute", execute)

    assert (assign_all(), [assignee(talk) for talk in talks]) == (3, [ada, bob, bob])
    assert failed
