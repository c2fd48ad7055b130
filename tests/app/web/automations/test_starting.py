"""Automations that begin as a template, or as a file."""

from __future__ import annotations

import io
import re
from contextlib import ExitStack
from typing import Any

import pytest

from app import bounds
from app.domain.automations import recipes
from app.lib import ids, json
from app.models.automations import Automation
from tests.app.domain.automations.imports.flow_samples import FLOWS, MENU, entangled
from tests.app.web.counting import counted_statements
from tests.cast import Api
from tests.logs import NASTY
from tests.pages import Person

MARK = {"id": "mark", "kind": "add_tag", "tag": "welcomed"}


def made(api: Api) -> Automation:
    """The only automation of the workspace."""
    [automation] = Automation.in_workspace(api.workspace_id)
    return automation


def file(content: bytes) -> dict[str, Any]:
    return {"file": (io.BytesIO(content), "flow.json")}


def test_a_template_is_adopted_with_one_press(api: Api, owner: Person) -> None:
    shown = owner.page("automations/templates")
    for recipe in recipes.all_recipes():
        assert recipe.title in shown

    answer = owner.post("automations/templates/use", {"template": "welcome-series"})

    assert answer.status_code == 303
    assert made(api).definition == recipes.find("welcome-series").body["definition"]
    assert (made(api).reentry, made(api).status) == ("once", "draft")


def test_a_template_that_names_a_member_asks_who_it_is(api: Api, owner: Person) -> None:
    asked = owner.post("automations/templates/use", {"template": "handover-to-a-person"})

    assert asked.headers["Location"].endswith("template=handover-to-a-person")
    member_id = re.search(rf'value="(mem_\w+)"[^>]*>{owner.email}', owner.page(asked.headers["Location"]))
    assert member_id
    owner.post("automations/templates/use", {"template": "handover-to-a-person", "use": member_id[1]})
    assert made(api).definition["steps"][1]["assignee_id"] == member_id[1]


def test_an_unknown_template_leads_to_all_of_them(owner: Person) -> None:
    assert owner.get("automations/templates/use?template=x").headers["Location"].endswith("/templates")
    assert owner.post("automations/templates/use", {"template": "x"}).status_code == 404


@pytest.mark.parametrize(("document", "kind"), [(MENU, "This is a typebot"), (FLOWS, "These are flows of RapidPro")])
def test_a_file_is_shown_with_what_has_no_equivalent_before_it_is_created(
    api: Api, owner: Person, document: dict[str, Any], kind: str
) -> None:
    shown = owner.post("automations/import", file(json.dumps(document)))

    assert shown.status_code == 200
    assert kind in shown.text
    assert "There is no step that sends an e-mail" in shown.text
    assert not Automation.in_workspace(api.workspace_id).count()
    answer = owner.post("automations/import", {"text": json.dumps(document).decode(), "create": "yes", "name": NASTY})
    assert answer.status_code == 303
    assert made(api).name == NASTY
    assert NASTY in owner.page(answer.headers["Location"])


def test_what_is_exported_is_imported_the_same(api: Api, owner: Person) -> None:
    given = {
        "exits": [{"event": "sale.recorded"}],
        "goal": {"event": "sale.recorded", "within_seconds": 60},
        "reentry": "once",
    }
    automation_id = api.automation(MARK, **given)["id"]
    exported = owner.get(f"automations/{automation_id}/file")
    assert "attachment" in exported.headers["Content-Disposition"]
    api.done(api.delete(f"automations/{automation_id}"))

    answer = owner.post("automations/import", {"text": exported.text, "create": "yes"})

    assert answer.status_code == 303
    found = made(api)
    assert {name: getattr(found, name) for name in given} == given
    assert found.definition["steps"] == [MARK]


def test_what_another_workspace_named_is_replaced_or_listed(api: Api, owner: Person) -> None:
    other, here = "aut_01kaj5bd40e6rr3f5y2kq0w9xz", api.automation(MARK, name="Onboarding")["id"]
    start = {"id": "begin", "kind": "start_automation", "automation_id": other}
    document = {"bellhop": "automation", "format": 1, "name": "Starter", "definition": {"steps": [start, MARK]}}

    shown = owner.post("automations/import", file(json.dumps({**document, "names": {other: "Welcome"}})))
    assert "Welcome is not in this workspace. The step is left out." in shown.text
    named_alike = owner.post("automations/import", file(json.dumps({**document, "names": {other: "Onboarding"}})))
    assert f'value="{here}" selected' in named_alike.text

    owner.post("automations/import", {"text": json.dumps(document).decode(), "create": "yes", "use": here})
    found = Automation.get(name="Starter")
    assert found.definition["steps"][0]["automation_id"] == here


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "The file is empty"),
        (b"{", "This is not JSON"),
        (b"[]", "is not an object"),
        (b"{}", "none of the files that can be imported"),
        (b"[" * 100_000, "This is not JSON"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "This is not JSON"),
        (b'"' + b"x" * 1_000_001 + b'"', "larger than 1 MB"),
        (b'{"definition": {"steps": [{"id": "a", "kind": "dance"}]}}', "There is no kind of step"),
        (b'{"groups": [1], "edges": []}', "The file is damaged"),
        (b'{"definition": {"steps": []}, "name": "\\u0000"}', "(NUL)"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused_with_a_sentence(
    owner: Person, content: bytes, sentence: str
) -> None:
    answer = owner.post("automations/import", file(content))

    assert answer.status_code == 422
    assert sentence in answer.text


def test_a_file_that_is_too_much_work_is_refused(owner: Person) -> None:
    # The first step is left out, as its automation is not here; then the second names what is gone, and so on.
    missing = {"id": "s0", "kind": "start_automation", "automation_id": "aut_01kaj5bd40e6rr3f5y2kq0w9xz"}
    chain = [
        {"id": f"s{number}", "kind": "set_variable", "name": "it", "value": f"{{{{ steps.s{number - 1} }}}}"}
        for number in range(1, 500)
    ]
    document = {"bellhop": "automation", "format": 1, "name": "Chain", "definition": {"steps": [missing, *chain]}}

    for content in (entangled(740), document):
        answer = owner.post("automations/import", file(json.dumps(content)))
        assert answer.status_code == 422
        assert "The file is too entangled" in answer.text


def test_an_import_waits_until_it_computes_alone(api: Api, owner: Person) -> None:
    with ExitStack() as waiting:
        for _ in range(bounds.WAITING_PER_WORKSPACE.most):
            waiting.enter_context(bounds.waiting(api.workspace_id))
        refused = owner.post("automations/import", file(json.dumps(FLOWS)))

    assert refused.status_code == 429
    assert owner.post("automations/import", file(json.dumps(FLOWS))).status_code == 200


def test_no_more_names_can_be_chosen_than_a_page_can_offer(api: Api, owner: Person) -> None:
    def asked(number: int) -> Any:
        starts = [
            {"id": f"s{each}", "kind": "start_automation", "automation_id": ids.new("aut")} for each in range(number)
        ]
        document = {"bellhop": "automation", "format": 1, "name": "Names", "definition": {"steps": [MARK, *starts]}}
        return owner.post("automations/import", file(json.dumps(document)))

    with counted_statements() as few:
        asked(1)
    with counted_statements() as many:
        shown = asked(50)
    refused = asked(51)

    assert shown.text.count("<select") == 50
    assert len(many) == len(few)
    assert refused.status_code == 422
    assert "The file names 51 automations, members, channels and segments. At most 50 can be chosen" in refused.text
