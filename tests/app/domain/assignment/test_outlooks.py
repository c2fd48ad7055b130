"""Outlooks: what they say is what the rule then does."""

from __future__ import annotations

import pytest

from app.database import rows
from app.domain.assignment import assignments
from app.domain.assignment.assignments import NextAssignee
from app.models.channels import Channel
from tests.app.domain.assignment.balancing import assign_all, assignee, make_balanced, set_member, set_rule, wait_in
from tests.cast import Api
from tests.talks import make_member


def outlook(channel_id: str) -> NextAssignee | None:
    return assignments.next_assignee(Channel.get_by_id(channel_id))


def test_who_is_next_gets_the_next(api: Api) -> None:
    channel_id = make_balanced(api.workspace_id)
    for _ in range(2):
        make_member(api.workspace_id)

    for name in ("a", "b", "c"):
        foreseen = outlook(channel_id)
        [talk] = wait_in(api, channel_id, name)
        assign_all()
        assert foreseen is not None
        assert (foreseen.reason, foreseen.member_id) == (None, assignee(talk))


def test_it_says_why_there_is_nobody(api: Api, others: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    member_id = make_member(api.workspace_id)
    make_member(others.workspace_id)
    channel_id = make_balanced(api.workspace_id, member_ids=[member_id])
    set_member(member_id, capacity=0)
    wait_in(api, channel_id, "a", "b")

    assert outlook(channel_id) == NextAssignee("full", None, 0, 2)
    monkeypatch.setattr(assignments, "MOST_QUEUED", 0)
    assert outlook(channel_id) == NextAssignee("full", None, 0, 1)
    set_member(member_id, availability="away")
    assert outlook(channel_id) == NextAssignee("away", None, 0, 1)
    rows("DELETE FROM members WHERE id = %s", (member_id,))
    assert outlook(channel_id) == NextAssignee("gone", None, 0, 1)
    set_rule(channel_id, "none")
    assert outlook(channel_id) is None
