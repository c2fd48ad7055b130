"""Contacts on pages."""

from __future__ import annotations

import csv
import io
import re
import uuid
from typing import Any

import pytest

from app.database import Database, rows
from app.lib import ids
from app.web import formats, lists
from tests import talks
from tests.app.web.counting import counted_statements
from tests.cast import Api, all_of, one
from tests.pages import Person

RTL = "شركة الضيافة"
LONG = "x" * 200
PLAIN = ("external_id", "email", "phone", "first_name", "last_name", "locale", "timezone")


def form(text: str) -> dict[str, Any]:
    """The fields of the contact's form, as a browser would send them back."""
    found: dict[str, Any] = {}
    for name in (*PLAIN, "seen"):
        if value := re.search(rf'name="{name}"[^>]* value="([^"]*)"', text):
            found[name] = value[1].replace("\n", "")
    rows = re.findall(
        r'name="custom_name" value="([^"]*)".*?<option value="(\w+)" selected>.*?<textarea[^>]*>\n?(.*?)</textarea>',
        text,
        flags=re.DOTALL,
    )
    for number, column in enumerate(("name", "kind", "value")):
        found[f"custom_{column}"] = [row[number] for row in rows]
    return found


def edited(owner: Person, contact: dict[str, Any], **changes: Any) -> Any:
    """Opens the contact's form, changes these fields and sends it."""
    fields = form(owner.page(f"contacts/{contact['id']}/edit"))
    return owner.post(f"contacts/{contact['id']}/edit", fields | changes)


def test_contacts_are_found_by_each_filter(owner: Person, api: Api) -> None:
    api.contact(email="ada@example.com", phone="+4930123456", external_id="c-1", first_name="Ada", tags=["vip"])
    api.contact(email="eve@example.com", first_name="Eve")

    assert "2 contacts" in owner.page("contacts")
    for query in ("q=ada", "email=ADA@example.com", "phone=%2B49 30 123456", "external_id=c-1", "tag=vip"):
        text = owner.page(f"contacts?{query}")
        assert ">Ada<" in text, query
        assert ">Eve<" not in text, query
    assert "No contact matches" in owner.page("contacts?q=nobody")


@pytest.mark.parametrize(("query", "sentence"), [("q=a", "Search for 2 to 100"), ("phone=12", "country code")])
def test_a_bad_filter_is_told_at_its_field(owner: Person, api: Api, query: str, sentence: str) -> None:
    api.contact(email="ada@example.com")

    answer = owner.get(f"contacts?{query}&tag=kept")

    assert answer.status_code == 422
    assert sentence in answer.text
    assert 'value="kept"' in answer.text


def test_the_count_is_capped_and_the_list_goes_on(owner: Person, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "ROWS", 2)
    for module in ("app.web.contacts.contact_pages", "app.web.formats"):
        monkeypatch.setattr(f"{module}.MOST_COUNTED", 3)
    for number in range(5):
        api.contact(external_id=f"c-{number}", tags=["all"])

    for path in ("contacts", "contacts?tag=all"):
        first = owner.page(path)
        assert f"{formats.MOST_COUNTED}+ contacts" in first
        following = re.search(r'rel="next" href="([^"]+)"', first)
        assert following
        second = owner.page(following[1])
        assert ("c-2<" in second, "c-4<" in second) == (True, False)
        assert "First page" in second


def test_the_list_is_a_file_for_those_who_may_export(owner: Person, agent: Person, api: Api) -> None:
    api.contact(email="ada@example.com", first_name="=1+1", tags=["a", "b"], custom_fields={"plan": "gold"})
    api.contact(email="eve@example.com")

    answer = owner.get("contacts?format=csv&q=ada")
    [row] = csv.DictReader(io.StringIO(answer.text))
    assert (row["email"], row["first_name"], row["tags"]) == ("ada@example.com", "'=1+1", '["a","b"]')
    assert len(owner.get("contacts?format=json").json) == 2
    assert agent.get("contacts?format=csv").status_code == 403
    assert "format=csv" not in agent.page("contacts")


def test_an_empty_workspace_says_what_to_do(owner: Person, agent: Person) -> None:
    assert "Import a file" in owner.page("contacts")
    assert "Import a file" not in agent.page("contacts")


def test_a_contact_is_created(agent: Person, api: Api) -> None:
    fields = {"email": " ada@example.com", "first_name": RTL, "opted_out": "true", "tags": "vip\r\nlondon\r\n"}
    custom = {"custom_name": ["plan", "orders", "paid", ""], "custom_kind": ["text", "number", "boolean", "text"]}

    answer = agent.post("contacts/new", fields | custom | {"custom_value": ["gold\r\nplus", "-3.5", "TRUE", ""]})

    assert answer.status_code == 303
    contact = api.show_contact(answer.headers["Location"].rpartition("/")[2])
    assert (contact["email"], contact["first_name"], contact["opted_out"]) == ("ada@example.com", RTL, True)
    assert contact["tags"] == ["london", "vip"]
    assert contact["custom_fields"] == {"plan": "gold\nplus", "orders": -3.5, "paid": True}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"email": "nobody"}, "This is not an e-mail address"),
        ({"email": ""}, "Give at least one of external_id, email, phone."),
        ({"phone": "12"}, "Give the phone number with its country code"),
        ({"first_name": "x" * 256}, "Length must be between 0 and 255."),
        ({"first_name": "a\0b"}, "cannot be stored"),
        ({"locale": "klingon"}, "Give a locale such as"),
        ({"timezone": "Mars/Olympus"}, "Give a time zone"),
        ({"tags": "x" * 101}, "A tag has 1 to 100 characters"),
        ({"custom_name": "n", "custom_kind": "number", "custom_value": "many"}, "this is not a number"),
        ({"custom_name": "b", "custom_kind": "boolean", "custom_value": "maybe"}, "write true or false"),
        ({"custom_name": "", "custom_kind": "text", "custom_value": "lost"}, "needs the name of its field"),
        ({"custom_name": "n", "custom_kind": "number", "custom_value": "9" * 16}, "lies between"),
    ],
)
def test_a_bad_form_is_shown_again_with_what_was_typed(owner: Person, changes: dict[str, Any], sentence: str) -> None:
    answer = owner.post("contacts/new", {"email": "ada@example.com", "last_name": "Kept"} | changes)

    assert answer.status_code == 422
    assert sentence in answer.text
    assert 'value="Kept"' in answer.text
    assert changes.get("custom_value", "") in answer.text
    assert one("SELECT count(*) FROM jobs") == 0


def test_a_second_click_creates_one_contact(owner: Person) -> None:
    once = {"email": "ada@example.com", "once": str(uuid.uuid4())}

    answers = [owner.post("contacts/new", once) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [303, 303]
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    assert one("SELECT count(*) FROM jobs") == 1


def test_a_contact_that_is_there_already_is_not_changed_but_named(owner: Person, api: Api) -> None:
    known = api.contact(email="ada@example.com", first_name="Ada")

    answer = owner.post("contacts/new", {"email": "ADA@example.com", "first_name": "Eve"})

    assert answer.status_code == 409
    assert "has this already" in answer.text
    assert f"/contacts/{known['id']}" in answer.text
    assert 'value="Eve"' in answer.text
    assert api.show_contact(known["id"])["first_name"] == "Ada"


def test_a_contact_is_shown_whole(owner: Person, api: Api) -> None:
    fields = {"plan": "gold", "orders": 3, "paid": True, "note": "<b>bold</b>"}
    contact = api.contact(email="ada@example.com", first_name=LONG, tags=["<i>vip</i>", RTL], custom_fields=fields)

    raw = owner.get(f"contacts/{contact['id']}").text
    text = owner.page(f"contacts/{contact['id']}")

    assert "<b>bold" not in raw
    assert "<i>vip" not in raw
    for each in (LONG, RTL, "<b>bold</b>", "<i>vip</i>", "gold", "true"):
        assert each in text
    assert f"/dashboard/contacts/{contact['id']}" in text
    assert LONG in owner.page("contacts")


def test_only_what_differs_is_changed(owner: Person, api: Api) -> None:
    fields = {"plan": "gold", "orders": 3, "paid": False, "note": "a\r\nb", "old": "x", "ratio": 0.5}
    contact = api.contact(email="ada@example.com", first_name=" Ada\nL ", custom_fields=fields)

    shown = form(owner.page(f"contacts/{contact['id']}/edit"))
    named = zip(shown["custom_name"], shown["custom_value"], strict=True)
    values = ["" if name == "old" else value for name, value in named]
    answer = edited(owner, contact, custom_value=values, last_name="Lovelace")

    assert answer.status_code == 303, answer.text
    changed = api.show_contact(contact["id"])
    assert changed["custom_fields"] == {name: value for name, value in fields.items() if name != "old"}
    assert (changed["first_name"], changed["last_name"]) == (" Ada\nL ", "Lovelace")
    kinds = all_of("SELECT convert_from(body, 'UTF8')::json -> 'data' ->> 'changed' FROM events ORDER BY id")
    assert kinds[-1] == '["custom_fields","last_name"]'


def test_a_form_that_changes_nothing_makes_no_event(owner: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com", custom_fields={"a": 1, "b": "", "c": "2", "d": 1e300 / 1e290})

    assert edited(owner, contact).status_code == 303

    assert one("SELECT count(*) FROM events") == 1


def test_a_form_that_has_become_stale_is_shown_again(owner: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    fields = form(owner.page(f"contacts/{contact['id']}/edit")) | {"last_name": "Mine"}
    api.contact(email="ada@example.com", first_name="Theirs")

    answer = owner.post(f"contacts/{contact['id']}/edit", fields)
    assert answer.status_code == 409
    assert "Somebody has changed this contact" in answer.text
    assert 'value="Mine"' in answer.text

    again = owner.post(f"contacts/{contact['id']}/edit", form(answer.text))
    assert again.status_code == 303


def test_a_second_click_on_a_change_is_no_stale_form(owner: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    fields = form(owner.page(f"contacts/{contact['id']}/edit")) | {"last_name": "Mine", "once": str(uuid.uuid4())}

    answers = [owner.post(f"contacts/{contact['id']}/edit", fields) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [303, 303]


def test_an_identifier_that_another_contact_has_is_told_at_its_field(owner: Person, api: Api) -> None:
    other = api.contact(external_id="c-1")
    contact = api.contact(email="ada@example.com")

    answer = edited(owner, contact, external_id="c-1")

    assert answer.status_code == 409
    assert re.search(r'name="external_id"[^>]*aria-invalid="true"', answer.text)
    assert f"/contacts/{other['id']}" in answer.text


def test_a_bad_change_keeps_what_was_typed(owner: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com")

    answer = edited(owner, contact, email="nobody", last_name="Kept")

    assert answer.status_code == 422
    assert 'value="nobody"' in answer.text
    assert 'value="Kept"' in answer.text


def test_the_last_identifier_stays(owner: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com")

    answer = edited(owner, contact, email="")

    assert answer.status_code == 409
    assert "needs at least one of" in answer.text


def test_tags_are_added_and_removed(agent: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com", tags=["a, b/c", "old"])

    agent.post(f"contacts/{contact['id']}/tags", {"name": " vip "})
    agent.post(f"contacts/{contact['id']}/tags/remove", {"name": "a, b/c"})

    assert api.show_contact(contact["id"])["tags"] == ["old", "vip"]


@pytest.mark.parametrize("tag", ["", " ", "x" * 101, "a\0b"])
def test_a_bad_tag_is_told_at_its_field(owner: Person, api: Api, tag: str) -> None:
    contact = api.contact(email="ada@example.com")

    answer = owner.post(f"contacts/{contact['id']}/tags", {"name": tag})

    assert answer.status_code == 422
    assert re.search(r'id="f-name"[^>]*aria-invalid="true"', answer.text)


def test_a_contact_is_erased_by_who_types_its_name(owner: Person, api: Api) -> None:
    contact = api.contact(email="Ada@example.com", external_id="c-1")
    assert "Ada@example.com" in owner.page(f"contacts/{contact['id']}/erase")

    refused = owner.post(f"contacts/{contact['id']}/erase", {"identifier": "eve@example.com"})
    assert refused.status_code == 422
    assert 'value="eve@example.com"' in refused.text
    assert one("SELECT count(*) FROM contacts") == 1

    once = {"identifier": "ada@EXAMPLE.com ", "once": str(uuid.uuid4())}
    answers = [owner.post(f"contacts/{contact['id']}/erase", once) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert one("SELECT count(*) FROM contacts") == 0


def test_agents_neither_erase_nor_export(agent: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com")

    assert agent.get(f"contacts/{contact['id']}/erase").status_code == 403
    assert agent.post(f"contacts/{contact['id']}/erase", {"identifier": "ada@example.com"}).status_code == 403
    assert "Erase" not in agent.page(f"contacts/{contact['id']}")


def test_contacts_of_another_workspace_are_not_there(owner: Person, stranger: Person, api: Api, others: Api) -> None:
    ours, theirs = api.contact(email="ours@example.com"), others.contact(email="theirs@example.com")

    assert "theirs@example.com" not in owner.page("contacts?q=example")
    assert stranger.get("contacts").status_code == 404
    assert stranger.get(f"contacts/{ours['id']}").status_code == 404
    for contact_id in (theirs["id"], ids.new("con"), "con_x"):
        for path in ("", "/edit", "/erase"):
            assert owner.get(f"contacts/{contact_id}{path}").status_code == 404
        for path in ("/edit", "/erase", "/tags", "/tags/remove"):
            assert owner.post(f"contacts/{contact_id}{path}", {"name": "vip"}).status_code == 404
    assert others.show_contact(theirs["id"])["tags"] == []


def test_staff_change_a_contact_in_a_visit_only_and_never_export(support: Person, api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    assert support.post(f"contacts/{contact['id']}/tags", {"name": "vip"}).status_code == 403
    assert support.get("contacts?format=csv").status_code == 403

    support.visit()
    assert support.post(f"contacts/{contact['id']}/tags", {"name": "vip"}).status_code == 303
    assert support.get("contacts?format=csv").status_code == 403


def test_a_page_of_contacts_takes_few_statements(owner: Person, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        api.contact(external_id=f"c-{number}")
    rows("UPDATE sessions SET seen_at = now() - interval '1 hour'")

    assert statements(owner, "contacts?q=c-", monkeypatch) <= 12
    assert statements(owner, "settings/billing", monkeypatch) <= 12


def statements(who: Person, path: str, monkeypatch: pytest.MonkeyPatch) -> int:
    run, count = Database.execute_sql, []
    monkeypatch.setattr(Database, "execute_sql", lambda self, *given: count.append(given[0]) or run(self, *given))
    who.page(path)
    monkeypatch.undo()
    return len(count)


def test_a_contact_begins_with_its_conversation_and_folds_technical_events(owner: Person, api: Api) -> None:
    api.endpoint()  # without any, no events are kept
    contact_id = api.contact(first_name="Ada", email="ada@example.com")["id"]
    empty = owner.page(f"contacts/{contact_id}")
    assert "No conversation yet" in empty
    channel_id = talks.make_channel(api.workspace_id)
    for number in range(10):
        message = talks.receive(api.workspace_id, contact_id, channel_id, f"Hello <b>{number}</b>")

    page = owner.page(f"contacts/{contact_id}")

    assert f"/inbox/{message.conversation_id}" in page
    assert page.index("Hello <b>2") < page.index("Hello <b>9") < page.index("ada@example.com")
    assert "Hello <b>1</b>" not in page
    assert "<b>9" not in owner.get(f"contacts/{contact_id}").text
    assert re.search(r"<details>\s*<summary>Technical events</summary>.*message\.received", page, re.DOTALL)


def test_the_page_of_a_contact_takes_as_many_statements_however_much_was_said(owner: Person, api: Api) -> None:
    contact_id = api.contact(external_id="ada")["id"]
    channel_id = talks.make_channel(api.workspace_id)
    taken = []
    for _ in range(2):
        for number in range(10):
            talks.receive(api.workspace_id, contact_id, channel_id, f"Hello {number}")
        with counted_statements() as seen:
            owner.page(f"contacts/{contact_id}")
        taken.append(len(seen))
    assert taken[0] == taken[1] <= 18


def test_a_date_that_an_automation_cannot_read_is_marked(api: Api, owner: Person) -> None:
    trigger = {"date": "contact.custom_fields.birthday", "every": "year", "at": "09:00"}
    definition = {"triggers": [trigger], "steps": [{"id": "mark", "kind": "add_tag", "tag": "welcomed"}]}
    automation_id = api.published(name="Gifts <3", definition=definition)
    ada = api.contact(external_id="ada", custom_fields={"birthday": "in spring", "plan": "soon"})["id"]

    page = owner.page(f"contacts/{ada}")
    assert page.count("This is no date, so nothing starts for it: <bdi>Gifts <3</bdi>.") == 1
    assert owner.page(f"automations/{automation_id}").count("1 contact has a 'birthday' that is no date") == 1
