"""Broadcasts on pages: composed with a preview, scheduled, watched, and read."""

from __future__ import annotations

import csv
import html
import io
import re
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from werkzeug.test import TestResponse

from app import bounds, database
from app.lib import clock
from app.web.broadcasts import broadcast_pages
from tests.app.web.counting import counted_statements
from tests.broadcasting import EVERYBODY, begin, later, people, settle, shown, work
from tests.cast import Api, one
from tests.forms import forms_of
from tests.logs import NASTY
from tests.pages import Person
from tests.talks import make_channel, receive

NOBODY = {"field": "contact.created_at", "is": "not_exists"}
SALE = {"name": "Sale", "audience": "everybody", "text": "Hello {{ contact.first_name }}!", "canary": "", "do": "send"}


def press(person: Person, path: str, fields: dict[str, Any]) -> TestResponse:
    """The answer to the button that sends, after a preview of the same fields."""
    previewed = person.post(path, fields | {"do": "preview"}).text
    found = re.search(r'name="previewed" value="([0-9a-f]+)"', previewed)
    kept = re.findall(r'name="attachments" value="([^"]+)"', previewed)
    named = {name: value for name, value in fields.items() if name != "files"}
    return person.post(path, named | {"attachments": kept, "previewed": found[1] if found else ""})


def typed_in(days: int) -> str:
    """A time that many days ahead, as a field has it."""
    return (clock.now() + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M")


def preview(person: Person, fields: dict[str, Any]) -> str:
    """The text of the page with a preview."""
    answer = person.post("broadcasts/new", fields)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def sent(person: Person, **fields: Any) -> str:
    """The identifier of a broadcast that was sent or scheduled on the page."""
    answer = press(person, "broadcasts/new", SALE | fields)
    assert answer.status_code == 303, answer.text
    return str(answer.location.rpartition("/")[2])


def test_without_any_the_list_says_what_a_broadcast_is_for(owner: Person, agent: Person) -> None:
    assert "sends one message to each contact" in owner.page("broadcasts")
    assert "Write one" in owner.page("broadcasts")
    assert "Write one" not in agent.page("broadcasts")


def test_a_preview_stores_nothing_and_loses_nothing_that_was_typed(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    ada = api.contact(phone="+49305000001", first_name="Ada", last_name="Lovelace")["id"]
    api.contact(phone="+49305000002")
    api.contact(email="bob@example.com", first_name="Bob")

    answer = owner.post(
        "broadcasts/new", SALE | {"do": "preview", "sample": ada, "answers": "Yes\nNo", "per_second": "7"}
    )

    assert answer.status_code == 200
    said = answer.text
    assert "No connected channel can reach them." in said
    assert "Hello Ada!" in said
    assert "of the contacts that match has no <code>contact.first_name</code>" in said
    assert "Send to 2 contacts" in said
    assert 'value="7"' in said
    assert "Yes\nNo" in said
    assert one("SELECT count(*) FROM broadcasts") == 0


def test_what_was_not_previewed_is_not_sent(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    people(api, 2)
    segment = api.done(api.post("segments", {"name": "Nobody", "filter": NOBODY}))["resource"]["id"]
    previewed = owner.post("broadcasts/new", SALE | {"do": "preview", "audience": segment}).text
    found = re.search(r'name="previewed" value="([0-9a-f]+)"', previewed)
    assert found

    answer = owner.post("broadcasts/new", SALE | {"previewed": found[1]})

    assert answer.status_code == 409
    assert "Something has changed since the preview." in answer.text
    assert "Send to 2 contacts" in answer.text
    assert one("SELECT count(*) FROM broadcasts") == 0


def test_nobody_to_reach_cannot_be_sent_to_but_be_scheduled(api: Api, owner: Person) -> None:
    now, later_on = (
        owner.post("broadcasts/new", SALE | {"do": "preview", **fields}).text
        for fields in ({}, {"send_at": typed_in(30)})
    )

    assert "Send to 0 contacts" not in now
    assert "Schedule for 0 contacts" in later_on


def test_a_time_is_one_of_the_workspace_s_clock(api: Api, owner: Person) -> None:
    database.rows("UPDATE workspaces SET timezone = 'America/New_York' WHERE id = %s RETURNING id", (api.workspace_id,))

    assert "On the clock of the workspace, America/New_York." in owner.page("broadcasts/new")
    at = typed_in(30)
    broadcast_id = sent(owner, send_at=at)

    assert shown(broadcast_id).send_at == datetime.fromisoformat(at).replace(tzinfo=ZoneInfo("America/New_York"))
    assert f'value="{at}"' in owner.page(f"broadcasts/{broadcast_id}/edit")


def test_a_time_that_has_passed_is_pointed_out(api: Api, owner: Person) -> None:
    people(api, 1)

    an_hour_ago = (clock.now() - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    page = owner.post("broadcasts/new", SALE | {"do": "preview", "send_at": an_hour_ago}).text

    assert "This time has passed. It would start at once." in page
    assert "Schedule" not in page


def test_a_time_of_the_past_is_refused(api: Api, owner: Person) -> None:
    people(api, 1)

    answer = owner.post("broadcasts/new", SALE | {"do": "preview", "send_at": "2020-01-20T09:00"})

    assert answer.status_code == 422
    assert "This time has passed. Leave it out to send at once." in answer.text


def test_a_time_that_has_come_for_some_contacts_is_pointed_out(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    people(api, 1)
    soon = (clock.now() + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M")

    page = preview(owner, SALE | {"do": "preview", "send_at": soon, "time_zone": "contact"})

    assert "Some clocks on earth show this time already." in page
    assert "It starts now, and reaches 1 contact by their own clocks." in page


def test_taking_back_the_time_of_a_scheduled_one_is_confirmed(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    people(api, 1)
    broadcast_id = sent(owner, send_at=typed_in(30))
    path = f"broadcasts/{broadcast_id}/edit"

    kept = owner.post(path, SALE | {"do": "preview", "send_at": typed_in(30)}).text
    taken_back = owner.post(path, SALE | {"do": "preview"}).text

    assert ">Save</button>" in kept
    assert ">Save</button>" not in taken_back
    assert "It reaches 1 contact now. What was sent cannot be recalled." in taken_back


def test_files_outlast_a_preview_and_go_with_the_message(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    people(api, 1)

    file = (io.BytesIO(b"prices"), "prices.txt", "text/plain")
    broadcast_id = sent(owner, files=file, send_at=typed_in(30))
    assert "prices.txt" in owner.page(f"broadcasts/{broadcast_id}")
    assert "prices.txt" in owner.page(f"broadcasts/{broadcast_id}/edit")

    [kept] = shown(broadcast_id).message["attachments"]
    fields = {"send_at": typed_in(30)}
    assert press(owner, f"broadcasts/{broadcast_id}/edit", SALE | fields).status_code == 303
    assert "attachments" not in shown(broadcast_id).message
    fields["attachments"] = kept["id"]
    assert press(owner, f"broadcasts/{broadcast_id}/edit", SALE | fields).status_code == 422  # it is gone


def test_too_many_files_are_refused(owner: Person) -> None:
    files = [(io.BytesIO(b"x"), f"{number}.txt") for number in range(11)]

    answer = owner.post("broadcasts/new", SALE | {"files": files})

    assert answer.status_code == 422
    assert "A message has at most 10 files." in answer.text


def test_a_template_is_shown_as_the_contact_gets_it(api: Api, owner: Person) -> None:
    api.contact(first_name="Ada", phone="+49305000001")
    template = '{"name": "sale", "language": "en", "parameters": ["{{ contact.first_name }}"]}'

    page = preview(owner, SALE | {"do": "preview", "text": "", "template": template})

    assert "The template for this contact" in page
    assert '"Ada"' in page.partition("The template for this contact")[2]


@pytest.mark.parametrize("name", ["contact.tags[0]", "contact.custom_fields['a b']", "contact.custom_fields.plan"])
def test_a_preview_counts_who_lacks_a_name_of_any_kind(api: Api, owner: Person, name: str) -> None:
    make_channel(api.workspace_id)
    people(api, 1)

    fields = {"do": "preview", "text": f"Hello {{{{ {name} }}}}!"}
    assert owner.post("broadcasts/new", SALE | fields).status_code == 200


def test_only_names_without_a_default_are_counted(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    people(api, 1)

    text = 'Hello {{ contact.first_name | default: "there" }}, {{ contact.last_name }}!'
    page = preview(owner, SALE | {"do": "preview", "text": text})

    assert "have no <code>contact.last_name</code>" in page or "has no <code>contact.last_name</code>" in page
    assert "no <code>contact.first_name</code>" not in page


def test_a_text_of_which_nothing_is_left_is_pointed_out(api: Api, owner: Person) -> None:
    people(api, 1)

    page = preview(owner, SALE | {"do": "preview", "text": "{{ contact.first_name }}"})

    assert "Nothing is left of the text for this contact. They would be skipped." in page
    assert '{{ contact.first_name | default: "there" }}' in page


def test_a_preview_waits_for_others_that_look_at_segments(
    api: Api, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "_SEGMENTS", bounds.Places(bounds.Bound("segments", 0, "counts")))

    page = owner.post("broadcasts/new", SALE | {"do": "preview"})

    assert page.status_code == 200
    assert 'class="flash error"' in page.text
    assert 'value="send"' not in page.text


def test_a_segment_of_another_workspace_is_not_there(api: Api, others: Api, owner: Person) -> None:
    segment = others.done(others.post("segments", {"name": "Theirs", "filter": EVERYBODY}))["resource"]["id"]

    answer = owner.post("broadcasts/new", SALE | {"do": "preview", "audience": segment})

    assert answer.status_code == 422
    assert "There is no such segment in this workspace." in answer.text


def connected(api: Api, kind: str, name: str) -> str:
    """The identifier of a channel of that kind."""
    channel_id = make_channel(api.workspace_id)
    database.count("UPDATE channels SET kind = %s, name = %s WHERE id = %s", (kind, name, channel_id))
    return channel_id


def card(page: str, title: str) -> str:
    """What the preview says about the kind of channel with that title."""
    return " ".join(page.partition(f"<h3>{title} ")[2].partition('<li class="card">')[0].split())


def test_a_preview_shows_the_message_on_each_kind_of_channel(api: Api, owner: Person) -> None:
    channels = {kind: connected(api, kind, NASTY) for kind in ("web_chat", "telegram", "whatsapp")}
    ada = api.contact(phone="+49305000001", first_name=NASTY)["id"]
    for kind in ("whatsapp", "telegram"):
        message = receive(api.workspace_id, ada, channels[kind])
        database.count("UPDATE conversations SET peer = '1' WHERE id = %s", (message.conversation_id,))

    raw = owner.post("broadcasts/new", SALE | {"do": "preview", "answers": "A\nB\nC\nD"}).text
    page = html.unescape(raw)

    assert "<script>alert" not in raw
    assert f"Hello {NASTY}!" in card(page, "Telegram")
    assert "They get it here" in card(page, "Telegram")
    assert "<summary>" not in card(page, "Telegram")
    assert "The time in which free text may be sent has passed." in card(page, "WhatsApp")
    assert "<summary>Options</summary>" in card(page, "WhatsApp")
    assert "The contact has no address on this channel." in card(page, "Web chat")
    assert "answers in-line" in card(page, "Web chat")


def test_a_preview_says_when_the_template_goes_out(api: Api, owner: Person) -> None:
    channel_id = connected(api, "whatsapp", "Shop")
    ada = api.contact(phone="+49305000001")["id"]
    fields = SALE | {"do": "preview", "template": '{"name": "sale"}'}

    closed = card(preview(owner, fields), "WhatsApp")
    message = receive(api.workspace_id, ada, channel_id)
    database.count(
        "UPDATE conversations SET peer = '1', window_ends_at = now() + interval '1 hour' WHERE id = %s",
        (message.conversation_id,),
    )
    template, text = (
        card(preview(owner, fields | {"template": each}), "WhatsApp") for each in (fields["template"], "")
    )

    assert "They get it here" in closed
    assert "Only a template goes through to them now. It goes out instead of the text." in closed
    assert "Free text would go through until <time" in template
    assert "Hello" not in template
    assert "Free text goes through to them until <time" in text
    assert "Hello" in text


def test_a_preview_of_one_channel_shows_no_other(api: Api, owner: Person) -> None:
    connected(api, "telegram", "Bot")
    chosen = connected(api, "whatsapp", "Shop")
    api.contact(phone="+49305000001")

    page = preview(owner, SALE | {"do": "preview", "channel_id": chosen})

    assert ("<h3>WhatsApp" in page, "<h3>Telegram" in page) == (True, False)


def test_a_preview_costs_as_many_statements_with_many_channels(api: Api, owner: Person) -> None:
    connected(api, "telegram", "Bot")
    api.contact(phone="+49305000001")
    fields = SALE | {"do": "preview"}
    preview(owner, fields)
    with counted_statements() as few:
        preview(owner, fields)
    for number in range(20):
        connected(api, ("telegram", "whatsapp", "web_chat")[number % 3], f"Channel {number}")
    with counted_statements() as many:
        preview(owner, fields)

    assert len(many) == len(few)


def test_a_text_that_a_channel_does_not_take_is_skipped_there(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    api.contact(phone="+49305000001", first_name="x" * 200)

    page = preview(owner, SALE | {"text": "{{ contact.first_name }}" * 40, "do": "preview"})

    assert "A message has at most 4,096 characters; this one has 8,000." in card(page, "Test")
    assert "They would be skipped" in card(page, "Test")


def test_it_is_sent_watched_and_read(api: Api, owner: Person) -> None:
    channel_id = make_channel(api.workspace_id)
    ada, _ = people(api, 2, first_name="Ada")
    gone = api.contact(email="nowhere@example.com")["id"]

    broadcast_id = sent(owner, canary="true")
    work(broadcast_id)
    assert "One contact was reached first." in owner.page(f"broadcasts/{broadcast_id}")
    owner.post(f"broadcasts/{broadcast_id}/continue", {})
    work(broadcast_id)
    settle(broadcast_id, "read")
    receive(api.workspace_id, ada, channel_id, "Yes")
    later(broadcast_id)

    page = owner.page(f"broadcasts/{broadcast_id}")
    assert shown(broadcast_id).state == "done"
    assert "3 of 3 contacts are done" in page
    assert "No connected channel can reach them." in page
    assert "data-refresh" not in page.partition("<h2>Contacts")[0]
    replied = owner.page(f"broadcasts/{broadcast_id}?outcome=replied")
    assert (ada in replied, gone in replied) == (True, False)
    assert "1" in owner.page("broadcasts?state=done")
    assert "No broadcast is in this state." in owner.page("broadcasts?state=aborted")


def test_it_is_paused_and_aborted(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    people(api, 3)
    broadcast_id = sent(owner, per_second="1")
    work(broadcast_id)

    states = []
    for verb in ("pause", "continue", "abort", "continue"):
        owner.post(f"broadcasts/{broadcast_id}/{verb}", {})
        states.append(shown(broadcast_id).state)

    assert states == ["paused", "running", "aborted", "aborted"]
    assert "This broadcast is aborted." in owner.page(f"broadcasts/{broadcast_id}")


def test_a_problem_is_told_with_what_to_do(api: Api, owner: Person) -> None:
    people(api, 1)
    work(broadcast_id := sent(owner))

    assert "No channel is connected. Connect one, then continue." in owner.page(f"broadcasts/{broadcast_id}")


def test_a_scheduled_one_is_edited(api: Api, owner: Person) -> None:
    channel_id = make_channel(api.workspace_id)
    segment = api.done(api.post("segments", {"name": "Regulars", "filter": EVERYBODY}))["resource"]["id"]
    fields = {"send_at": typed_in(30), "audience": segment, "channel_id": channel_id, "answers": "Yes"}
    broadcast_id = sent(owner, **fields, time_zone="contact", per_second="5")

    form = owner.page(f"broadcasts/{broadcast_id}/edit")
    assert "Yes" in form
    assert f'value="{segment}" selected' in form
    assert f'value="{channel_id}" selected' in form
    assert f'value="{fields["send_at"]}"' in form
    answer = press(owner, f"broadcasts/{broadcast_id}/edit", SALE | {"send_at": fields["send_at"], "name": "Winter"})
    assert answer.status_code == 303
    changed = shown(broadcast_id)
    assert (changed.name, changed.segment_id, changed.filter) == ("Winter", None, EVERYBODY)
    assert (changed.channel_id, changed.per_second, changed.time_zone) == (None, None, "workspace")
    assert changed.message == {"text": SALE["text"]}


def test_an_edit_keeps_what_the_form_cannot_show(api: Api, owner: Person) -> None:
    send_at = (clock.now() + timedelta(days=1)).replace(second=7, microsecond=89_000)
    buttons = [{"id": "take-it", "label": "Yes"}, {"id": "answer-1", "label": "Later"}, {"id": "no", "label": "No"}]
    broadcast_id = begin(
        api.workspace_id, send_at=send_at.isoformat(), message={"text": SALE["text"], "buttons": buttons}
    )
    path = f"broadcasts/{broadcast_id}/edit"
    [fields] = [dict(form.fields) for form in forms_of(owner.get(path).text) if ("name", "Sale") in form.fields]

    answer = press(owner, path, fields | {"answers": "No\nYes\nNever", "do": "send"})

    assert answer.status_code == 303

    changed = shown(broadcast_id)
    assert changed.send_at == send_at
    assert changed.message["buttons"] == [
        {"id": "no", "label": "No"},
        {"id": "take-it", "label": "Yes"},
        {"id": "answer-2", "label": "Never"},
    ]


def test_one_that_has_begun_is_not_edited(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    work(broadcast_id := begin(api.workspace_id))

    assert owner.get(f"broadcasts/{broadcast_id}/edit").status_code == 303
    answer = press(owner, f"broadcasts/{broadcast_id}/edit", SALE)
    assert answer.status_code == 409
    assert "Only a scheduled broadcast can be changed" in answer.text


def test_it_starts_an_automation(api: Api, owner: Person) -> None:
    automation_id = api.published({"id": "end", "kind": "stop"})
    people(api, 1)

    work(broadcast_id := sent(owner, text="", automation_id=automation_id))

    page = owner.page(f"broadcasts/{broadcast_id}")
    assert "Runs started" in page
    assert "Reached the goal" in page
    assert f"/automations/{automation_id}" in page


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": " "}, "name"),
        ({"audience": ""}, "Choose who gets it."),
        ({"text": ""}, "A message needs a text"),
        ({"text": "{{ contact.first_nam }}"}, "There is no"),
        ({"template": "{"}, "This is not JSON."),
        ({"answers": "x" * 21}, "answers"),
        ({"automation_id": "aut_01kaj5bd40e6rr3f5y2kq0w9xz"}, "not both"),
        ({"channel_id": "chn_01kaj5bd40e6rr3f5y2kq0w9xz"}, "There is no such channel"),
        ({"send_at": "2998-01-20T09:00"}, "Give a time within 90 days."),
        ({"time_zone": "contact"}, "Give the time that it has to be where a contact is."),
        ({"send_at": "soon"}, "send_at"),
        ({"per_second": "many"}, "per_second"),
        ({"per_second": "0"}, "per_second"),
    ],
    ids=str,
)
def test_what_is_wrong_stands_at_its_field(api: Api, owner: Person, fields: dict[str, str], said: str) -> None:
    answer = owner.post("broadcasts/new", SALE | fields)

    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.text
    assert said in answer.text
    assert one("SELECT count(*) FROM broadcasts") == 0


def test_agents_see_and_owners_manage(api: Api, owner: Person, agent: Person, stranger: Person) -> None:
    broadcast_id = begin(api.workspace_id)

    assert agent.get(f"broadcasts/{broadcast_id}").status_code == 200
    assert agent.get("broadcasts/new").status_code == 403
    assert agent.post(f"broadcasts/{broadcast_id}/abort", {}).status_code == 403
    assert stranger.get(f"broadcasts/{broadcast_id}").status_code == 404
    assert owner.get("broadcasts/bct_01kaj5bd40e6rr3f5y2kq0w9xz").status_code == 404


def test_a_file_has_all_rows_in_order(api: Api, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    make_channel(api.workspace_id)
    ada, bob, cleo = people(api, 3)
    work(broadcast_id := begin(api.workspace_id))
    monkeypatch.setattr(broadcast_pages, "BATCH", 2)

    rows = list(csv.DictReader(io.StringIO(owner.get(f"broadcasts/{broadcast_id}?format=csv").text)))
    same = owner.get(f"broadcasts/{broadcast_id}?format=json").json

    assert [row["contact_id"] for row in rows] == [cleo, bob, ada]
    assert [row["contact_id"] for row in same] == [cleo, bob, ada]
    assert owner.get(f"broadcasts/{broadcast_id}?format=json&outcome=skipped").json == []


def test_it_says_until_when_it_waits(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    people(api, 1)
    work(broadcast_id := begin(api.workspace_id))
    waits = "UPDATE broadcasts SET state = 'running', wakes_at = now() + interval '1 hour' WHERE id = %s RETURNING id"
    database.rows(waits, (broadcast_id,))

    page = owner.page(f"broadcasts/{broadcast_id}")

    assert "It waits for quiet hours or clocks, and goes on" in page
    assert "a second" not in page.partition("<h2>Contacts")[0]


def test_a_message_in_the_inbox_leads_to_its_broadcast(api: Api, owner: Person) -> None:
    make_channel(api.workspace_id)
    people(api, 1)
    work(broadcast_id := begin(api.workspace_id))
    conversation_id = one("SELECT id FROM conversations")

    assert f'/broadcasts/{broadcast_id}">Broadcast</a>' in owner.page(f"inbox/{conversation_id}")


def test_names_of_contacts_stay_text_and_a_file_runs_no_formula(api: Api, owner: Person, agent: Person) -> None:
    make_channel(api.workspace_id)
    api.contact(phone="+49305000001", first_name=NASTY)
    api.contact(phone="+49305000002", first_name="=1+1")
    work(broadcast_id := begin(api.workspace_id, name=f"Sale {NASTY}"[:255]))

    page = owner.get(f"broadcasts/{broadcast_id}").text + owner.get("broadcasts").text
    assert NASTY not in page
    file = owner.get(f"broadcasts/{broadcast_id}?format=csv")
    rows = list(csv.DictReader(io.StringIO(file.text)))
    assert [row["first_name"] for row in rows] == ["'=1+1", NASTY]
    assert [row["outcome"] for row in rows] == ["sent", "sent"]
    assert agent.get(f"broadcasts/{broadcast_id}?format=csv").status_code == 403
