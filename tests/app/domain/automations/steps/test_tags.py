"""add_tag and remove_tag"""

from __future__ import annotations

import pytest

from app.models.contacts import Contact
from tests.app.domain.automations.steps.runs import carried_out, log_of
from tests.cast import event_kinds


def tags_of(contact_id: str) -> list[str]:
    return list(Contact.get_by_id(contact_id).tags)


def test_tags_are_added_and_removed(workspace_id: str, contact_id: str) -> None:
    vip, lead = {"kind": "add_tag", "tag": "vip"}, {"kind": "add_tag", "tag": "lead"}

    run = carried_out(workspace_id, contact_id, lead, vip, {"kind": "remove_tag", "tag": "lead"})

    assert tags_of(contact_id) == ["vip"]
    assert [text for _, text in log_of(run)] == [
        "The tag 'lead' was added.",
        "The tag 'vip' was added.",
        "The tag 'lead' was removed.",
    ]
    assert event_kinds(workspace_id)[-4:] == ["tag.added", "tag.added", "tag.removed", "automation.completed"]


def test_a_tag_that_is_there_or_not_there_already_changes_nothing(workspace_id: str, contact_id: str) -> None:
    vip = {"kind": "add_tag", "tag": "vip"}

    run = carried_out(workspace_id, contact_id, vip, vip, {"kind": "remove_tag", "tag": "lead"})

    assert [text for _, text in log_of(run)[1:]] == [
        "The contact had the tag 'vip' already.",
        "The contact did not have the tag 'lead'.",
    ]
    assert event_kinds(workspace_id).count("tag.added") == 1


def test_a_tag_is_a_template(workspace_id: str, contact_id: str) -> None:
    carried_out(
        workspace_id, contact_id, {"kind": "add_tag", "tag": " plan-{{ trigger.variables.plan }} "}, plan="gold"
    )

    assert tags_of(contact_id) == ["plan-gold"]


@pytest.mark.parametrize(
    "tag", ["{{ trigger.variables.nothing }}", "{{ trigger.variables.long }}", "a{{ '%0A' | url_decode }}b"]
)
def test_a_text_that_is_no_tag_fails_the_run(workspace_id: str, contact_id: str, tag: str) -> None:
    run = carried_out(workspace_id, contact_id, {"kind": "add_tag", "tag": tag}, long="x" * 101)

    assert run.status == "failed"
    assert run.failure == {
        "code": "error",
        "detail": "A tag has 1 to 100 characters, no control characters, and more than spaces.",
        "step": "1",
    }
    assert tags_of(contact_id) == []


def test_a_contact_with_too_many_tags_fails_the_run(workspace_id: str, contact_id: str) -> None:
    Contact.update(tags=[f"tag-{number:03}" for number in range(100)]).where(Contact.id == contact_id).execute()

    run = carried_out(workspace_id, contact_id, {"kind": "add_tag", "tag": "vip"})

    assert run.failure["code"] == "error"
    assert run.failure["detail"] == "A contact has at most 100 tags; this would make 101."
