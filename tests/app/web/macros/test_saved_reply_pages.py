"""Saved replies on pages."""

from __future__ import annotations

import io
import re
import uuid
from html import unescape
from typing import Any

import pytest

from app.domain.macros import saved_replies
from app.errors import Overloaded
from app.lib import ids
from app.models.saved_replies import SavedReply
from tests.cast import Api, all_of, one
from tests.pages import Person
from tests.talks import make_saved_reply

TYPED = {"shortcut": "/refund", "text": "Hello {{ contact.first_name }}.", "do": "save"}
PREVIEW = {"text": "Hello {{ contact.first_name }}, of {{ member.email }}", "do": "preview"}


def make(owner: Person, **changes: Any) -> str:
    """Creates a saved reply on the page; returns its identifier."""
    answer = owner.post("saved-replies/new", TYPED | changes)
    assert answer.status_code == 303, answer.text
    return str(one("SELECT max(id) FROM saved_replies"))


def file(name: str = "terms.txt", content: bytes = b"Terms") -> tuple[io.BytesIO, str]:
    return io.BytesIO(content), name


def test_the_list_says_what_to_do_while_it_is_empty(owner: Person) -> None:
    text = owner.page("saved-replies")

    assert "No saved replies yet" in text
    assert "by <kbd>/</kbd> and that shortcut" in text
    assert "Write one" in text


def test_an_agent_writes_changes_and_deletes_one(agent: Person, api: Api) -> None:
    reply_id = make(agent)
    assert "/refund is saved." in agent.page("saved-replies")
    assert "Hello {{ contact.first_name }}." in agent.page(f"saved-replies/{reply_id}")

    agent.post(f"saved-replies/{reply_id}", TYPED | {"shortcut": "money", "text": "Soon."})
    found = api.get(f"saved-replies/{reply_id}").json["data"]
    assert (found["shortcut"], found["text"]) == ("money", "Soon.")
    agent.post(f"saved-replies/{reply_id}/delete")

    assert "The saved reply /money was deleted." in agent.page("saved-replies")
    assert agent.post(f"saved-replies/{reply_id}/delete").status_code == 404
    actions = all_of("SELECT action FROM audit_entries WHERE actor_type = 'member' ORDER BY id")
    assert actions == ["saved_replies.create", "saved_replies.update", "saved_replies.delete"]


def test_a_second_click_makes_no_second_one(owner: Person) -> None:
    once = {"once": str(uuid.uuid4())}
    for _ in range(2):
        make(owner, **once)

    assert one("SELECT count(*) FROM saved_replies") == 1


def test_they_are_found_by_shortcut_and_text(owner: Person, api: Api) -> None:
    make_saved_reply(api, "hours", "From nine to six.")
    make_saved_reply(api, "refund", "It is on its way.")

    found = owner.page("saved-replies?q=hou"), owner.page("saved-replies?q=ON ITS"), owner.page("saved-replies?q=zzz")

    assert ["/hours" in text for text in found] == [True, False, False]
    assert ["/refund" in text for text in found] == [False, True, False]
    assert "No saved reply matches" in found[2]


def test_a_long_list_has_pages(owner: Person, api: Api) -> None:
    for number in range(51):
        SavedReply.insert(
            id=ids.new("srp"), workspace_id=api.workspace_id, shortcut=f"s{number}", folded=f"s{number}", text="x"
        ).execute()

    first = owner.page("saved-replies")

    assert "/s50<" in first
    assert "/s0<" not in first
    [address] = re.findall(r'rel="next" href="([^"]+)"', first)
    assert "/s0<" in owner.page(address)


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"shortcut": ""}, 422, "Give a shortcut."),
        ({"shortcut": "two words"}, 422, "Give a shortcut of 1 to 32 characters, without spaces"),
        ({"text": " "}, 422, "Write the text."),
        ({"text": "{{ contact.frist_name }}"}, 422, "Did you mean 'contact.first_name'?"),
        ({"text": "{{ contact.first_name"}, 422, "fault"),
        ({"shortcut": "Hours"}, 409, "Another saved reply has the shortcut 'hours'."),
        ({"attachments": ids.new("upl")}, 422, "There is no such upload"),
    ],
)
def test_what_is_refused_is_said_and_what_was_typed_stays(
    owner: Person, api: Api, changes: dict[str, str], status: int, said: str
) -> None:
    make_saved_reply(api, "hours")

    answer = owner.post("saved-replies/new", TYPED | {"text": "Typed."} | changes)

    assert answer.status_code == status
    assert said in answer.text.replace("&#39;", "'")
    assert changes.get("text", "Typed.").strip() in answer.text.replace("&#39;", "'")
    assert one("SELECT count(*) FROM saved_replies") == 1


def test_there_are_no_more_than_a_workspace_may_have(owner: Person, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    make_saved_reply(api, "hours")
    monkeypatch.setattr(saved_replies.QUOTA, "most", 1)

    answer = owner.post("saved-replies/new", TYPED)

    assert answer.status_code == 409
    assert "A workspace has at most 1 saved replies." in answer.text


def test_files_are_added_kept_and_removed(owner: Person, api: Api) -> None:
    reply_id = make(owner, files=[file("terms.txt"), file("price.txt")])
    terms, price = api.get(f"saved-replies/{reply_id}").json["data"]["attachments"]
    assert (terms["name"], price["name"]) == ("terms.txt", "price.txt")
    assert "terms.txt" in owner.page(f"saved-replies/{reply_id}")

    owner.post(f"saved-replies/{reply_id}", TYPED | {"attachments": price["id"], "files": [file("third.txt")]})

    names = [each["name"] for each in api.get(f"saved-replies/{reply_id}").json["data"]["attachments"]]
    assert names == ["price.txt", "third.txt"]


def test_files_stay_in_the_form_when_the_shortcut_is_taken(owner: Person, api: Api) -> None:
    other_id = make_saved_reply(api)

    answer = owner.post("saved-replies/new", TYPED | {"files": [file()]})

    assert answer.status_code == 409
    assert f"/saved-replies/{other_id}" in answer.text
    [upload_id] = all_of("SELECT id FROM uploads")
    assert f'value="{upload_id}" checked' in answer.text
    make(owner, shortcut="money", attachments=upload_id)
    assert one("SELECT saved_reply_id FROM uploads") == one("SELECT id FROM saved_replies WHERE shortcut = 'money'")


def test_an_empty_file_is_refused(owner: Person) -> None:
    answer = owner.post("saved-replies/new", TYPED | {"files": [file(content=b"")]})

    assert answer.status_code == 422
    assert "The file is empty." in answer.text


def test_files_of_another_workspace_and_of_another_reply_are_refused(owner: Person, api: Api, others: Api) -> None:
    theirs = others.post("uploads", data=b"Theirs").json["data"]["id"]
    make(owner, files=[file()])
    taken = one("SELECT id FROM uploads WHERE saved_reply_id IS NOT NULL")

    for upload_id in (theirs, taken):
        answer = owner.post("saved-replies/new", TYPED | {"shortcut": "other", "attachments": upload_id})
        assert answer.status_code == 422
        assert "There is no such upload" in answer.text

    assert one("SELECT count(*) FROM saved_replies") == 1


def test_a_preview_is_filled_in_for_a_real_contact(owner: Person, api: Api) -> None:
    ada = api.contact(email="ada@example.com", first_name="Ada")["id"]
    api.contact(email="grace@example.com")

    page = owner.post("saved-replies/new", PREVIEW | {"contact_id": ada}).text
    latest = owner.post("saved-replies/new", PREVIEW).text

    assert "Hello Ada, of owner@shop.example" in page
    assert "Hello , of owner@shop.example" in latest
    assert "Empty for this contact: <code>contact.first_name</code>" in latest
    assert one("SELECT count(*) FROM saved_replies") == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ contact.frist_name }}", "Did you mean 'contact.first_name'?"),
        ("{% for i in (1..300000) %}x{% endfor %}", "a range has more than 10,000 elements"),
        ("a\0b", "a character that cannot be stored"),
    ],
)
def test_a_preview_says_why_there_is_none(owner: Person, api: Api, text: str, said: str) -> None:
    api.contact(email="ada@example.com")

    page = owner.post("saved-replies/new", PREVIEW | {"text": text}).text

    assert said in unescape(page.partition('id="preview"')[2])


def test_the_form_is_there_also_if_its_preview_is_not(owner: Person, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.contact(email="ada@example.com")
    reply_id = make_saved_reply(api)

    def overload(workspace_id: str) -> None:
        raise Overloaded

    monkeypatch.setattr("app.bounds.alone", overload)

    text = owner.page(f"saved-replies/{reply_id}")

    assert "Hello {{ contact.first_name }}." in text
    assert "Too many requests that take long are under way" in text


def test_a_preview_shows_no_contact_of_another_workspace(owner: Person, api: Api, others: Api) -> None:
    theirs = others.contact(email="theirs@example.com", first_name="Theirs")["id"]

    answer = owner.post("saved-replies/new", PREVIEW | {"contact_id": theirs})

    assert "Theirs" not in answer.text
    assert "Hello {{ contact.first_name }}" in answer.text


def test_those_of_another_workspace_are_not_there(owner: Person, stranger: Person, api: Api, others: Api) -> None:
    theirs, ours = make_saved_reply(others), make_saved_reply(api)

    for path in (f"saved-replies/{theirs}", f"saved-replies/{ids.new('srp')}", "saved-replies/refund"):
        assert owner.get(path).status_code == 404
        assert owner.post(path, TYPED).status_code == 404
        assert owner.post(f"{path}/delete").status_code == 404
    assert "/refund" in owner.page("saved-replies")
    assert stranger.get(f"saved-replies/{ours}").status_code == 404
    assert one("SELECT count(*) FROM saved_replies") == 2


def test_support_changes_them_during_a_visit(support: Person, api: Api) -> None:
    reply_id = make_saved_reply(api)

    assert "/refund" in support.page("saved-replies")
    assert support.post(f"saved-replies/{reply_id}", TYPED | {"text": "Changed."}).status_code == 403
    support.visit()
    assert support.post(f"saved-replies/{reply_id}", TYPED | {"text": "Changed."}).status_code == 303

    assert one("SELECT text FROM saved_replies") == "Changed."
    assert one("SELECT count(*) FROM audit_entries WHERE action = 'saved_replies.update'") == 1
