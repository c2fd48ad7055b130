"""Labels of conversations: replaced as a whole, and kept in a table of their own for lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from app.database import rows
from app.domain.conversations import conversation_changes
from app.errors import Invalid
from app.models.conversations import Conversation
from tests.cast import Api, all_of, event_bodies, one
from tests.talks import change, close, locked, receive, recent


def label(workspace_id: str, contact_id: str, labels: Sequence[str]) -> None:
    locked(
        workspace_id,
        contact_id,
        lambda unit, contact: conversation_changes.set_labels(
            change(unit, workspace_id), contact, recent(unit, contact), labels
        ),
    )


def events(workspace_id: str) -> list[dict[str, Any]]:
    return [body["data"] for body in event_bodies(workspace_id) if body["kind"] == "conversation.labelled"]


def listed() -> list[str]:
    return all_of("SELECT label || ' ' || status FROM conversation_labels ORDER BY 1")


def test_labels_are_replaced_and_the_event_says_how(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    for labels in (["vip", "refund", "vip"], ["refund", "vip"], ["refund", "late"], []):
        label(workspace_id, contact_id, labels)

    seen = [(each["conversation"]["labels"], each["added"], each["removed"]) for each in events(workspace_id)]
    assert seen == [
        (["refund", "vip"], ["refund", "vip"], []),
        (["late", "refund"], ["late"], ["vip"]),
        ([], [], ["late", "refund"]),
    ]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("Refund", "refund"),
        ("refund", "\uff32efund"),
        ("Zoë", "ZOE\u0308"),
        ("ΠΛΗΡΟΦΟΡΙΕΣ", "πληροφορίες"),
        ("BİLGİ", "bilgi"),
        ("re\u200bfund", "refund"),
    ],
)
def test_what_is_equal_to_a_reader_is_one_label_as_it_was_written_first(
    workspace_id: str, contact_id: str, channel_id: str, first: str, again: str
) -> None:
    receive(workspace_id, contact_id, channel_id)

    label(workspace_id, contact_id, [first, again])
    label(workspace_id, contact_id, [again])
    label(workspace_id, contact_id, [again, "vip"])

    [labels] = all_of("SELECT labels FROM conversations")
    assert labels == sorted([first, "vip"])
    assert [(each["added"], each["removed"]) for each in events(workspace_id)] == [([first], []), (["vip"], [])]
    conversation = Conversation.get()
    assert conversation_changes.has_label(conversation, again)
    assert conversation_changes.labels_without(conversation, [again]) == ["vip"]


def test_a_conversation_that_has_a_label_in_two_spellings_loses_one_with_the_next_change(
    workspace_id: str, contact_id: str, channel_id: str
) -> None:
    receive(workspace_id, contact_id, channel_id)
    rows("UPDATE conversations SET labels = '{Refund,refund}'")

    label(workspace_id, contact_id, ["Refund", "refund", "vip"])

    assert all_of("SELECT labels FROM conversations") == [["Refund", "vip"]]


def test_a_conversation_has_at_most_twenty(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)
    label(workspace_id, contact_id, [f"label-{number}" for number in range(20)])

    with pytest.raises(Invalid, match="labels: A conversation has at most 20 labels"):
        label(workspace_id, contact_id, [f"label-{number}" for number in range(21)])

    assert one("SELECT cardinality(labels) FROM conversations") == 20


def test_the_table_for_lists_follows_labels_and_status(workspace_id: str, contact_id: str, channel_id: str) -> None:
    receive(workspace_id, contact_id, channel_id)

    label(workspace_id, contact_id, ["refund", "vip"])
    assert listed() == ["refund open", "vip open"]
    close(workspace_id, contact_id)
    label(workspace_id, contact_id, ["vip", "late"])

    assert listed() == ["late closed", "vip closed"]


def test_an_erased_contact_leaves_no_labels(api: Api, channel_id: str) -> None:
    contact_id = api.contact(email="ada@example.com")["id"]
    receive(api.workspace_id, contact_id, channel_id)
    label(api.workspace_id, contact_id, ["refund"])

    api.done(api.delete(f"contacts/{contact_id}"))

    assert one("SELECT labels FROM conversations") == []
    assert listed() == []
