"""split"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from app.domain.automations.steps.split import KIND, arm_of
from app.lib import ids
from app.models.contacts import Contact
from tests.app.domain.automations.steps.runs import carried_out, log_of

ARMS = [{"name": "short", "percent": 50.5}, {"name": "long", "percent": 29.5}, {"name": "none", "percent": 20}]


def split(**steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"id": "it", "kind": "split", "arms": [{**arm, "steps": steps.get(str(arm["name"]), [])} for arm in ARMS]}


def tag(name: str) -> dict[str, Any]:
    return {"id": name, "kind": "add_tag", "tag": name}


def test_each_arm_gets_its_share_of_many_contacts() -> None:
    contacts = [ids.new("con") for _ in range(100_000)]

    drawn = [arm_of(f"aut_1/split/{contact}", ARMS) for contact in contacts]

    for name, count in Counter(drawn).items():
        share = next(arm["percent"] for arm in ARMS if arm["name"] == name)
        assert abs(count / 1_000 - float(str(share))) < 1
    assert drawn == [arm_of(f"aut_1/split/{contact}", ARMS) for contact in contacts]


def test_an_arm_without_a_share_gets_nobody() -> None:
    arms = [{"name": "all", "percent": 100}, {"name": "nobody", "percent": 0}]

    assert {arm_of(str(number), arms) for number in range(1_000)} == {"all"}


def test_a_contact_takes_the_steps_of_its_arm_and_then_those_after_the_split(
    workspace_id: str, contact_id: str
) -> None:
    step = split(**{str(arm["name"]): [tag(str(arm["name"]))] for arm in ARMS})
    name = {"id": "name", "kind": "set_field", "field": "arm", "value": "{{ steps.it.arm }}"}

    run = carried_out(workspace_id, contact_id, step, name)

    contact = Contact.get_by_id(contact_id)
    assert contact.tags == [contact.custom_fields["arm"]]
    assert log_of(run)[0] == ("succeeded", f"The contact gets the arm '{contact.tags[0]}'.")


@pytest.mark.parametrize(
    ("arms", "pointer", "detail"),
    [
        ([ARMS[0], ARMS[1]], "/arms", "The percentages add up to 80. Make them add up to 100."),
        ([ARMS[0], ARMS[0] | {"percent": 49.5}], "/arms/1/name", "Change this: another arm has the same name."),
    ],
)
def test_names_and_percentages_are_checked(arms: list[dict[str, Any]], pointer: str, detail: str) -> None:
    [fault] = KIND.check({"arms": arms}, "/steps/0")

    assert (fault.pointer, fault.detail) == (f"/steps/0{pointer}", detail)


def test_a_third_of_each_is_a_hundred() -> None:
    arms = [{"name": name, "percent": share} for name, share in (("a", 33.3), ("b", 33.3), ("c", 33.4))]

    assert list(KIND.check({"arms": arms}, "")) == []
