"""How much work the pages of an automation are that has as many steps as it may, in the worst order for each."""

from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations import definitions
from app.domain.automations.editing import working_copies
from app.models.automations import Automation, AutomationVersion
from tests.automations import make_automation
from tests.cast import Api
from tests.growth import calls
from tests.pages import Person

MOST_PER_STEP = 1_600  # calls


def messages(number: int, text: str = "Message {} for {{{{ contact.first_name }}}}") -> list[dict[str, Any]]:
    return [{"id": f"m{each}", "kind": "send_message", "text": text.format(each)} for each in range(number)]


def nested(number: int, level: int = 1, name: str = "b") -> list[dict[str, Any]]:
    """Branches within branches, as deep as they may be, with all other steps in the deepest lists."""
    if level == 10 or number < 3:
        return [{**each, "id": f"{name}{each['id']}"} for each in messages(number)]
    half = (number - 1) // 2
    ways = {"then": nested(half, level + 1, f"{name}t"), "else": nested(number - 1 - half, level + 1, f"{name}e")}
    condition = {"field": "contact.tags", "is": "contains", "value": "vip"}
    return [{"id": name, "kind": "branch", "if": condition, **ways}]


def faulty(number: int) -> list[dict[str, Any]]:
    """Steps of which each names another that is not there and that has nearly the name of many."""
    return messages(number, "{{{{ steps.m{}x.text }}}} {{{{ contact.firstname }}}}")


@pytest.mark.parametrize(
    ("path", "make"),
    [
        ("edit/step", messages),
        ("edit/step", nested),
        ("edit/step", faulty),
        ("edit/json", faulty),
        ("edit/try", nested),
        ("", nested),
        ("results", nested),
        ("versions/compare?from=1", messages),
        ("versions/compare?from=1", nested),
    ],
)
def test_twice_the_steps_are_twice_the_work(api: Api, owner: Person, path: str, make: Any) -> None:
    def work(number: int) -> int:
        steps = make(number)
        automation_id = make_automation(api.workspace_id, {"steps": steps})
        values = {"automation_id": automation_id, "number": 2, "workspace_id": api.workspace_id}
        turned = {"steps": [*reversed(steps)]}
        AutomationVersion.insert(**values, definition=turned).execute()
        Automation.update(latest_version=2, definition=turned).where(Automation.id == automation_id).execute()
        address = f"automations/{automation_id}/{path}".rstrip("/")
        address += "&fold=all" if "?" in address else "?fold=all"
        owner.page(address)  # which reads the templates of the steps
        return calls(lambda: owner.page(address))

    small, large = work(250), work(500)
    assert large < 2.3 * small
    assert large < 500 * MOST_PER_STEP


def test_what_is_wrong_in_a_draft_is_looked_for_once(api: Api, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    faults = definitions.faults
    monkeypatch.setattr(working_copies.definitions, "faults", lambda given: looked.append(given) or faults(given))
    automation_id = make_automation(api.workspace_id, {"steps": faulty(20)})

    for path in ("edit", "edit/step", "edit/triggers", "edit"):
        owner.page(f"automations/{automation_id}/{path}")

    assert len(looked) == 1
