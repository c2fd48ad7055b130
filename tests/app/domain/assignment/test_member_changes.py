"""Members go away and come back, and take as many conversations as they say."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.domain import writes
from app.domain.assignment import member_changes
from app.domain.work.changes import Write
from app.errors import InsufficientScope, NotFound
from app.lib import ids
from tests.app.domain.assignment.balancing import (
    assign_all,
    assignee,
    assignees,
    set_member,
    wait_in,
)
from tests.cast import Api, all_of, event_bodies, one
from tests.talks import make_channel, make_member


def patch(api: Api, member_id: str, **fields: Any) -> dict[str, Any]:
    assert api.done(api.patch(f"members/{member_id}", fields))["status"] == "succeeded"
    return dict(api.get(f"members/{member_id}").json["data"])


def test_availability_and_capacity_are_changed_and_audited(api: Api) -> None:
    member_id = make_member(api.workspace_id)

    assert patch(api, member_id, availability="away", capacity=3)["capacity"] == 3
    assert patch(api, member_id, capacity=None) | {"availability": "away", "capacity": None} == patch(api, member_id)
    details = all_of("SELECT detail FROM audit_entries WHERE action = 'members.update' ORDER BY id")
    assert details == [{"availability": "away", "capacity": 3}, {"capacity": None}]


def test_who_goes_away_gives_back_what_waits_and_it_keeps_its_place(
    api: Api, workspace_id: str, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_changes, "PART", 1)
    leaving = make_member(workspace_id)
    answered, first, second = wait_in(api, channel_id, "a", "b", "c")
    assign_all()
    staying = make_member(workspace_id)
    set_member(staying, capacity=0)
    rows("UPDATE conversations SET waiting_since = NULL WHERE id = %s", (answered,))
    [later] = wait_in(api, channel_id, "d")
    since = {talk: one("SELECT waiting_since FROM conversations WHERE id = %s", talk) for talk in (first, second)}

    patch(api, leaving, availability="away")

    assert [assignee(talk) for talk in (answered, first, second, later)] == [leaving, None, None, None]
    assert since == {talk: one("SELECT waiting_since FROM conversations WHERE id = %s", talk) for talk in since}
    set_member(staying, capacity=2)
    assert assign_all() == 2
    assert [assignee(talk) for talk in (answered, first, second, later)] == [leaving, staying, staying, None]
    told = [body["data"] for body in event_bodies(workspace_id) if body["kind"] == "conversation.assigned"]
    assert [each["assigned_by"]["type"] for each in told] == ["rule"] * 3 + ["api"] * 2 + ["rule"] * 2


def test_who_says_so_keeps_them(api: Api, workspace_id: str, channel_id: str) -> None:
    member_id = make_member(workspace_id)
    wait_in(api, channel_id, "a")
    assign_all()

    patch(api, member_id, availability="away", reassign=False)
    assert assignees() == [member_id]

    patch(api, member_id, availability="away")
    assert assignees() == [None]


def test_conversations_of_channels_without_the_rule_stay(api: Api, workspace_id: str, channel_id: str) -> None:
    member_id = make_member(workspace_id)
    [talk] = wait_in(api, make_channel(workspace_id), "a")
    api.done(api.patch(f"conversations/{talk}", {"assignee_id": member_id}))

    patch(api, member_id, availability="away")

    assert assignee(talk) == member_id


def test_who_is_removed_gives_them_back_too(api: Api, workspace_id: str, channel_id: str) -> None:
    leaving = make_member(workspace_id)
    [talk] = wait_in(api, channel_id, "a")
    assign_all()
    staying = make_member(workspace_id)

    member_changes.remove(workspace_id, leaving, None)
    api.apply()

    assert (assign_all(), assignee(talk)) == (1, staying)


def test_without_a_channel_with_the_rule_nothing_follows_from_a_removal(api: Api, workspace_id: str) -> None:
    member_changes.remove(workspace_id, make_member(workspace_id), None)

    assert one("SELECT count(*) FROM jobs") == 0


def test_a_member_who_was_removed_meanwhile_is_not_found(api: Api, workspace_id: str) -> None:
    member_id = make_member(workspace_id)
    accepted = api.patch(f"members/{member_id}", {"capacity": 3})
    member_changes.remove(workspace_id, member_id, None)

    assert api.done(accepted)["problem"]["status"] == 404


def test_agents_change_their_own_availability_and_admins_everything(workspace_id: str) -> None:
    agent, other, admin = (make_member(workspace_id) for _ in range(3))
    set_member(admin, role="admin")

    member_changes.check(workspace_id, {"availability": "away", "reassign": False}, agent, agent)
    member_changes.check(workspace_id, {"availability": "away", "capacity": 3}, agent, admin)
    for payload, member_id in (({"capacity": 3}, agent), ({"availability": "away"}, other)):
        with pytest.raises(InsufficientScope):
            member_changes.check(workspace_id, payload, member_id, agent)
    with pytest.raises(NotFound):
        member_changes.check(workspace_id, {}, ids.new("mem"), admin)


def test_a_job_of_an_agent_is_checked_when_it_runs(api: Api, workspace_id: str) -> None:
    agent, other = make_member(workspace_id), make_member(workspace_id)
    job, _ = writes.accept(Write(workspace_id, "members.update", {"availability": "away"}, "trace-1", other, agent))
    api.apply()

    assert one("SELECT problem->>'status' FROM jobs WHERE id = %s", job.id) == "403"
    assert one("SELECT availability FROM members WHERE id = %s", other) == "available"
