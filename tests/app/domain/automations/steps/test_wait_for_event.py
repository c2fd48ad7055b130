from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from app.database import rows
from app.domain.automations import publications
from app.domain.triggers import fan_out_parts, triggers
from app.models.automations import Automation
from app.models.runs import Run
from tests.app.domain.automations.steps.runs import carried_out, read, woken
from tests.app.domain.triggers.triggering import make_contact, tag
from tests.automations import carry_on, make_automation, runs_of
from tests.cast import Api, all_of, in_threads, one

SOLD = {"id": "sold", "kind": "wait_for_event", "event": "tag.added", "tag": "sold", "timeout_seconds": 60}
END = {"id": "end", "kind": "add_tag", "tag": "went on"}


def waiting(workspace_id: str, contact_id: str, **fields: Any) -> Run:
    """A run that waits for the tag `sold`, after a step; afterwards it adds the tag `went on`."""
    first = {"kind": "set_variable", "name": "order", "value": "7"}
    late = [{"id": "late", "kind": "add_tag", "tag": "late"}]
    run = carried_out(workspace_id, contact_id, first, {**SOLD, "otherwise": late, **fields}, END)
    assert (run.status, run.waits_for) == ("waiting", "event")
    return run


def tags_of(contact_id: str) -> set[str]:
    return set(one("SELECT tags FROM contacts WHERE id = %s", contact_id))


def test_the_run_goes_on_with_the_event(workspace_id: str, contact_id: str) -> None:
    run = waiting(workspace_id, contact_id, save_as="sale")

    tag(workspace_id, contact_id, "sold", "other")
    carry_on(workspace_id)

    run = read(run)
    assert (run.status, "went on" in tags_of(contact_id), "late" in tags_of(contact_id)) == ("completed", True, False)
    found = run.saved["sold"]
    assert found == {"event": run.saved["sale"], "timed_out": False}
    assert (found["event"]["kind"], found["event"]["data"]["tag"]) == ("tag.added", "sold")


def test_it_goes_on_with_otherwise_after_the_timeout(workspace_id: str, contact_id: str) -> None:
    run = woken(waiting(workspace_id, contact_id, save_as="sale"))

    assert (run.status, run.saved["sold"], run.saved["sale"]) == ("completed", {"event": None, "timed_out": True}, None)
    assert {"late", "went on"} <= tags_of(contact_id)


def test_other_events_other_contacts_and_workspaces_do_not_count(
    workspace_id: str, contact_id: str, others: Api
) -> None:
    run = waiting(workspace_id, contact_id)
    stranger = others.contact(email="other@example.com")["id"]

    tag(workspace_id, contact_id, "other")
    tag(workspace_id, make_contact(workspace_id), "sold")
    tag(others.workspace_id, stranger, "sold")
    carry_on(workspace_id)

    assert read(run).status == "waiting"


def test_an_event_before_the_step_does_not_count(workspace_id: str, contact_id: str) -> None:
    tag(workspace_id, contact_id, "sold")

    assert read(waiting(workspace_id, contact_id)).status == "waiting"


def test_what_the_run_does_itself_does_not_count(workspace_id: str, contact_id: str) -> None:
    run = carried_out(workspace_id, contact_id, {"kind": "add_tag", "tag": "sold"}, SOLD)

    assert (run.status, run.waits_for) == ("waiting", "event")


def test_an_event_between_the_trigger_and_the_first_step_counts(workspace_id: str, contact_id: str) -> None:
    make_automation(workspace_id, {"triggers": [{"event": "tag.added", "tag": "vip"}], "steps": [SOLD]})
    tag(workspace_id, contact_id, "sold", "vip")
    assert all_of("SELECT status FROM runs") == ["queued"]
    rows("UPDATE contacts SET tags = '{vip}' WHERE id = %s", (contact_id,))

    tag(workspace_id, contact_id, "sold")
    carry_on(workspace_id)

    [run] = runs_of(contact_id)
    assert run.status == "completed"
    latest = one("SELECT max(id) FROM events WHERE kind = 'tag.added'")
    assert run.saved["sold"]["event"]["id"] == latest


def test_conditions_may_name_the_event_and_the_run(workspace_id: str, contact_id: str) -> None:
    of_order = {"field": "contact.custom_fields.order", "is": "equals", "other": "run.variables.order"}
    of_event = {"field": "trigger.event.data.tag", "is": "equals", "value": "sold"}
    run = waiting(workspace_id, contact_id, **{"if": {"all": [of_order, of_event]}})
    tag(workspace_id, contact_id, "sold")
    carry_on(workspace_id)
    assert read(run).status == "waiting"

    rows("UPDATE contacts SET custom_fields = '{\"order\": \"7\"}', tags = '{}' WHERE id = %s", (contact_id,))
    tag(workspace_id, contact_id, "sold")
    carry_on(workspace_id)

    assert read(run).status == "completed"


def test_runs_of_an_earlier_version_still_get_their_event(workspace_id: str, contact_id: str) -> None:
    run = waiting(workspace_id, contact_id)
    Automation.update(definition={"steps": [END]}).where(Automation.id == run.automation_id).execute()
    publications.publish(Automation.get_by_id(run.automation_id), None)

    tag(workspace_id, contact_id, "sold")
    carry_on(workspace_id)

    assert read(run).status == "completed"


def test_an_event_that_the_fan_out_gets_to_later_wakes_it(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = waiting(workspace_id, contact_id)
    monkeypatch.setattr(triggers, "ROUNDS", 0)
    tag(workspace_id, contact_id, "sold")
    assert read(run).due_at is None
    monkeypatch.undo()

    fan_out_parts.work(workspace_id)
    carry_on(workspace_id)

    assert read(run).status == "completed"


def test_an_event_that_was_left_before_the_wait_does_not_wake_it(
    workspace_id: str, contact_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triggers, "ROUNDS", 0)
    tag(workspace_id, contact_id, "sold")
    monkeypatch.undo()
    run = waiting(workspace_id, contact_id)

    fan_out_parts.work(workspace_id)
    carry_on(workspace_id)

    assert read(run).status == "waiting"


def test_of_an_event_and_a_timeout_one_wins(workspace_id: str, contact_id: str) -> None:
    run = waiting(workspace_id, contact_id)
    rows("UPDATE runs SET due_at = now(), resume_at = NULL WHERE id = %s", (run.id,))

    in_threads([partial(tag, workspace_id, contact_id, "sold"), partial(carry_on, workspace_id)])
    carry_on(workspace_id)

    run = read(run)
    assert (run.status, ("late" in tags_of(contact_id))) == ("completed", run.saved["sold"]["timed_out"])


def test_runs_that_wait_are_found_by_an_index(workspace_id: str, contact_id: str) -> None:
    run = waiting(workspace_id, contact_id)
    more = """
        INSERT INTO runs (id, workspace_id, automation_id, version, contact_id, status, trace_id, waits_for)
        SELECT 'run_' || n, workspace_id, automation_id, 1, CASE WHEN n %% 2 = 0 THEN contact_id ELSE 'con_' || n END,
            'waiting', '', CASE WHEN n %% 10 = 0 THEN 'event' ELSE 'time' END
        FROM generate_series(1, 20000) AS n, (SELECT * FROM runs WHERE id = %s) AS run RETURNING 1
    """
    rows(more, (run.id,))
    rows("ANALYZE runs")
    looks = [triggers.Lookup(0, contact_id, run.automation_id, None, run.created_at)]
    parameters = {**triggers._parameters(looks, 200), "most": triggers.MOST_COMPARED}
    query = triggers._LATEST.format(condition="runs.waits_for = 'event'")

    plan = "\n".join(line for (line,) in rows(f"EXPLAIN {query}", parameters))

    assert "runs_awaiting" in plan
    assert "Seq Scan on runs" not in plan
    assert len(triggers._find("runs.waits_for = 'event'", looks, 200)) == triggers.MOST_COMPARED


def fault(api: Api, **fields: Any) -> tuple[str, str]:
    step: Mapping[str, Any] = {"id": "wait", "kind": "wait_for_event", **fields}
    problem = api.post("automations", {"name": "Wait", "definition": {"steps": [step]}}).json
    [found] = problem["errors"]
    return found["pointer"], found["detail"]


def test_what_cannot_happen_is_refused(api: Api) -> None:
    named = {"field": "trigger.event.data.sail.amount", "is": "exists"}

    assert fault(api)[0] == "/definition/steps/0/event"
    assert fault(api, event="tag.add")[0] == "/definition/steps/0/event"
    assert fault(api, event="sale.recorded", tag="vip")[0] == "/definition/steps/0/tag"
    assert fault(api, event="tag.added", tag=" vip")[0] == "/definition/steps/0/tag"
    pointer, detail = fault(api, event="sale.recorded", **{"if": named})
    assert (pointer, "sale" in detail) == ("/definition/steps/0/if/field", True)
