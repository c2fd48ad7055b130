"""The pane beside a conversation: its contact is changed, tagged and merged there, and its runs are resumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.lifecycle import merges
from app.models.contacts import Contact
from tests.app.web.inbox.conftest import Say
from tests.cast import Api, all_of, one
from tests.forms import forms_of
from tests.pages import Person
from tests.talks import locked, make_run

SCRIPT = {"headers": {"Accept": "application/json"}}


def contact_of(talk: str) -> str:
    return str(one("SELECT contact_id FROM conversations WHERE id = %s", talk))


def stored(talk: str, column: str) -> Any:
    return one(f"SELECT {column} FROM contacts WHERE id = %s", contact_of(talk))


@pytest.fixture
def fields(agent: Person) -> Callable[..., dict[str, Any]]:
    """The form of the pane as it is shown, with other values in some fields."""

    def fields(talk: str, **typed: Any) -> dict[str, Any]:
        [form] = [each for each in forms_of(agent.get(f"inbox/{talk}").text) if each.action.endswith("pane=contact")][
            :1
        ]
        found: dict[str, Any] = {}
        for name, value in form.fields:
            found.setdefault(name, []).append(value)
        return {**found, **typed}

    return fields


Shown = Callable[..., dict[str, Any]]


def test_a_contact_is_changed_beside_its_conversation(api: Api, agent: Person, say: Say, fields: Shown) -> None:
    talk = say("Ada")
    api.done(api.patch(f"contacts/{contact_of(talk)}", {"custom_fields": {"size": 7}, "external_id": "ada-1"}))
    given = fields(talk, last_name="Lovelace", phone="+49 30 123456", timezone="Europe/London")
    given["custom_value"][0] = "8"

    answer = agent.post(f"inbox/{talk}/contact?view=mine&pane=contact", given)

    assert (answer.status_code, answer.location) == (
        303,
        f"/workspaces/{agent.workspace_id}/inbox/{talk}?view=mine&pane=contact",
    )
    row = all_of("SELECT last_name FROM contacts") + all_of("SELECT phone FROM contacts")
    assert row == ["Lovelace", "+4930123456"]
    assert (stored(talk, "custom_fields"), stored(talk, "external_id")) == ({"size": 8}, "ada-1")


def test_fields_beyond_those_that_are_shown_stay(
    api: Api, agent: Person, say: Say, fields: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.inbox.inbox_pages.MOST_SHOWN", 1)
    talk = say("Ada")
    api.done(api.patch(f"contacts/{contact_of(talk)}", {"custom_fields": {"a": 1, "b": 2}}))

    assert "all of its fields" in agent.page(f"inbox/{talk}")
    agent.post(f"inbox/{talk}/contact", fields(talk, first_name="Augusta"))

    assert stored(talk, "custom_fields") == {"a": 1, "b": 2}


def test_the_script_gets_the_pane_as_it_is_then(agent: Person, say: Say, fields: Shown) -> None:
    talk = say("Ada")

    done = agent.post(f"inbox/{talk}/contact", fields(talk, last_name="Lovelace"), **SCRIPT)
    refused = agent.post(f"inbox/{talk}/contact", fields(talk, email="ada at home"), **SCRIPT)

    assert (done.status_code, done.json["said"]) == (200, "The contact is changed.")
    assert done.json["pane"].count("<aside") == 1
    assert "<bdi>Ada Lovelace</bdi>" in done.json["pane"]
    assert refused.status_code == 422
    assert 'value="ada at home" aria-invalid="true"' in refused.json["pane"]
    assert stored(talk, "email") == "ada@example.com"


@pytest.mark.parametrize("options", [{}, SCRIPT])
def test_what_somebody_else_has_changed_is_not_overwritten(
    api: Api, agent: Person, say: Say, fields: Shown, options: dict[str, Any]
) -> None:
    talk = say("Ada")
    mine = fields(talk, last_name="Byron")
    api.done(api.patch(f"contacts/{contact_of(talk)}", {"last_name": "Lovelace"}))

    answer = agent.post(f"inbox/{talk}/contact", mine, **options)
    shown = answer.json["pane"] if options else answer.text

    assert answer.status_code == 409
    assert "Somebody has changed this contact since you opened the form." in shown
    assert "Now: Lovelace." in shown
    assert 'value="Byron"' in shown
    [form] = [each for each in forms_of(shown) if "last_name" in dict(each.fields)]
    assert agent.post(f"inbox/{talk}/contact", dict(form.fields)).status_code == 303
    assert stored(talk, "last_name") == "Byron"


def test_an_identifier_of_another_contact_leads_to_it_and_to_a_merge(agent: Person, say: Say, fields: Shown) -> None:
    say("Grace")
    talk = say("Ada")

    answer = agent.post(f"inbox/{talk}/contact", fields(talk, email="grace@example.com"))

    assert answer.status_code == 409
    assert "Another contact of this workspace already has this email." in answer.text
    assert "has what you have typed" in answer.text
    assert agent.post(f"inbox/{talk}/contact/merge", {"contact_id": one(OF_GRACE)}).status_code == 303
    assert one("SELECT count(*) FROM contacts") == 1
    assert one("SELECT count(*) FROM conversations WHERE contact_id = %s", contact_of(talk)) == 2


OF_GRACE = "SELECT id FROM contacts WHERE first_name = 'Grace'"


def test_who_may_be_the_same_person_is_suggested(api: Api, agent: Person, say: Say) -> None:
    say("Grace")
    talk, grace = say("Ada"), str(one(OF_GRACE))
    assert "May be the same person" not in agent.page(f"inbox/{talk}")
    locked(
        api.workspace_id,
        contact_of(talk),
        lambda unit, contact: merges.suggest(unit, api.workspace_id, contact.id, grace, "same_phone"),
    )

    page = agent.page(f"inbox/{talk}")

    assert 'Grace</bdi></a> <span class="muted">has the same phone number' in page
    assert "This cannot be undone." in page
    done = agent.post(f"inbox/{talk}/contact/merge", {"contact_id": grace}, **SCRIPT)
    assert (done.status_code, "May be the same person" in done.json["pane"]) == (200, False)


@pytest.mark.parametrize("other", ["", "con_1", "itself"])
def test_a_merge_with_nobody_is_refused(agent: Person, say: Say, other: str) -> None:
    talk = say("Ada")

    answer = agent.post(f"inbox/{talk}/contact/merge", {"contact_id": contact_of(talk) if other == "itself" else other})

    assert answer.status_code == 422
    assert one("SELECT count(*) FROM contacts") == 1


def test_tags_are_added_and_removed(agent: Person, say: Say) -> None:
    talk = say("Ada")

    for tag in ("vip", "late payer"):
        assert agent.post(f"inbox/{talk}/contact/tags", {"name": tag}).status_code == 303
    agent.post(f"inbox/{talk}/contact/tags/remove", {"name": "vip"})
    refused = agent.post(f"inbox/{talk}/contact/tags", {"name": " "}, **SCRIPT)

    assert stored(talk, "tags") == ["late payer"]
    assert refused.status_code == 422
    assert 'aria-describedby="h-name"' in refused.json["pane"]


def test_tags_to_choose_from_are_the_frequent_ones_of_new_contacts(
    api: Api, agent: Person, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, tags in enumerate((["vip"], ["vip", "late"], ["vip", "late", "<b>"])):
        api.contact(external_id=str(number), tags=tags)
    talk = say("Ada")

    assert agent.get(f"inbox/{talk}/contact/tags").json == ["<b>", "late", "vip"]
    assert Contact.recent_tags("ws_1") == []


def test_a_run_goes_on_without_leaving_the_conversation(api: Api, agent: Person, say: Say) -> None:
    talk = say("Ada")
    held = {"status": "held", "waits_for": "member", "step": "ask"}
    run, other = (make_run(api.workspace_id, contact_of(each), **held) for each in (talk, say("Grace")))

    assert "until you resume it" in agent.page(f"inbox/{talk}")
    assert agent.post(f"inbox/{talk}/contact/runs/{run}", {"do": "dance"}).status_code == 422
    assert agent.post(f"inbox/{talk}/contact/runs/{other}", {"do": "resume"}).status_code == 422
    done = agent.post(f"inbox/{talk}/contact/runs/{run}?pane=contact", {"do": "resume"})
    refused = agent.post(f"inbox/{talk}/contact/runs/{run}", {"do": "resume"}, **SCRIPT)

    assert done.location == f"/workspaces/{agent.workspace_id}/inbox/{talk}?view=all&pane=contact"
    assert all_of("SELECT status FROM runs ORDER BY id") == ["running", "held"]
    assert (refused.status_code, 'role="alert"' in refused.json["pane"]) == (409, True)


def test_the_timeline_tells_what_became_of_the_contact_and_folds_the_rest(api: Api, agent: Person, say: Say) -> None:
    talk = say("Ada")

    part = agent.page(f"inbox/{talk}/contact/timeline")

    assert part.index("contact.created") < part.index("Technical entries (")
    assert part.index("contacts.upsert") > part.index("Technical entries (")


def test_of_a_deleted_contact_nothing_can_be_changed(api: Api, agent: Person, say: Say) -> None:
    talk = say("Ada")
    api.done(api.delete(f"contacts/{contact_of(talk)}"))

    for form in ("", "/tags", "/tags/remove", "/merge"):
        assert agent.post(f"inbox/{talk}/contact{form}", {"name": "vip"}).status_code == 404
    assert "its data is erased" in agent.page(f"inbox/{talk}")
