"""Counts of conversations: kept beside the writes, and exact whenever they are read."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from app.database import rows
from app.domain.conversations import conversation_counts
from tests.cast import Api, in_threads, one
from tests.talks import make_channel, make_member, receive

COUNTED = """
    SELECT count(*), count(*) FILTER (WHERE assignee_id IS NULL), count(*) FILTER (WHERE snoozed_until IS NOT NULL),
        count(*) FILTER (WHERE waiting_since IS NOT NULL)
    FROM conversations WHERE workspace_id = %s AND status = 'open'
"""


def counted_anew(workspace_id: str) -> dict[str, Any]:
    [plain] = rows(COUNTED, (workspace_id,))
    is_open = "FROM conversations WHERE workspace_id = %s AND status = 'open'"
    labels = rows(f"SELECT unnest(labels) AS label, count(*) {is_open} GROUP BY 1", (workspace_id,))
    assignees = rows(f"SELECT assignee_id, count(*) {is_open} AND assignee_id IS NOT NULL GROUP BY 1", (workspace_id,))
    names = ("open", "unassigned", "snoozed", "waiting")
    return {**dict(zip(names, plain, strict=True)), "labels": dict(labels), "assignees": dict(assignees)}


def change(api: Api, conversation_id: str, **fields: Any) -> None:
    api.done(api.patch(f"conversations/{conversation_id}", fields))


@pytest.mark.parametrize("seed", range(3))
def test_they_are_exact_after_each_change_and_each_fold(api: Api, others: Api, seed: int) -> None:
    random, members = Random(seed), [make_member(api.workspace_id) for _ in range(2)]
    talks = []
    for number in range(4):
        contact_id, channel_id = api.contact(external_id=f"c-{number}")["id"], make_channel(api.workspace_id)
        talks.append((contact_id, channel_id, receive(api.workspace_id, contact_id, channel_id).conversation_id))
    theirs = receive(others.workspace_id, others.contact(external_id="x")["id"], make_channel(others.workspace_id))
    change(others, theirs.conversation_id, labels=["a"])

    for _ in range(25):
        contact_id, channel_id, conversation_id = random.choice(talks)
        alter = partial(change, api, conversation_id)
        random.choice(
            [
                partial(receive, api.workspace_id, contact_id, channel_id),
                partial(alter, status=random.choice(["open", "closed"])),
                partial(alter, assignee_id=random.choice([None, *members])),
                partial(alter, labels=random.sample(["a", "b:c", "ü"], random.randint(0, 3))),
                partial(alter, snoozed_until=random.choice([None, "2027-01-01T09:00:00Z"])),
                partial(api.post, f"conversations/{conversation_id}/messages", {"text": "Yes."}),
                conversation_counts.fold,
            ]
        )()
        api.apply()
        assert conversation_counts.of(api.workspace_id) == counted_anew(api.workspace_id)
    assert conversation_counts.of(others.workspace_id) == counted_anew(others.workspace_id)


def test_two_schedulers_add_each_change_once_and_nothing_stays_at_zero(api: Api) -> None:
    contact_id, channel_id = api.contact(external_id="ada")["id"], make_channel(api.workspace_id)
    conversation_id = receive(api.workspace_id, contact_id, channel_id).conversation_id
    change(api, conversation_id, labels=["refund"])

    folded = sum(in_threads([partial(conversation_counts.fold, 2)] * 3))
    while more := conversation_counts.fold(2):
        folded += more

    assert (folded > 0, one("SELECT count(*) FROM conversation_deltas")) == (True, 0)
    assert conversation_counts.of(api.workspace_id) == counted_anew(api.workspace_id)
    change(api, conversation_id, status="closed")
    conversation_counts.fold()
    assert one("SELECT count(*) FROM conversation_counts") == 0


def test_the_labels_shown_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    contact_id, channel_id = api.contact(external_id="ada")["id"], make_channel(api.workspace_id)
    conversation_id = receive(api.workspace_id, contact_id, channel_id).conversation_id
    change(api, conversation_id, labels=["a", "b", "c"])
    conversation_counts.fold()
    monkeypatch.setattr(conversation_counts, "MOST_LABELS", 2)

    found = conversation_counts.of(api.workspace_id)

    assert (found["labels"], found["open"], found["unassigned"]) == ({"a": 1, "b": 1}, 1, 1)
    change(api, conversation_id, labels=["b", "d"])
    assert conversation_counts.of(api.workspace_id)["labels"] == {"b": 1}
    conversation_counts.fold()
    assert conversation_counts.of(api.workspace_id)["labels"] == {"b": 1, "d": 1}


def test_labels_that_are_equal_to_a_reader_are_counted_together(api: Api) -> None:
    contact_id = api.contact(external_id="ada")["id"]
    for label in ("refund", "Refund", "vip"):
        channel_id = make_channel(api.workspace_id)
        conversation_id = receive(api.workspace_id, contact_id, channel_id).conversation_id
        change(api, conversation_id, labels=[label])

    assert conversation_counts.of(api.workspace_id)["labels"] == {"Refund": 2, "vip": 1}


def test_a_message_that_changes_no_count_notes_nothing(api: Api) -> None:
    contact_id, channel_id = api.contact(external_id="ada")["id"], make_channel(api.workspace_id)
    receive(api.workspace_id, contact_id, channel_id)
    conversation_counts.fold()

    receive(api.workspace_id, contact_id, channel_id)

    assert one("SELECT count(*) FROM conversation_deltas") == 0
