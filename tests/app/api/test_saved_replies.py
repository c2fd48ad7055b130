"""Saved replies in the API: creating, finding, rendering, changing and deleting them, inside the workspace."""

from __future__ import annotations

from typing import Any

import pytest

from app.database import rows
from app.domain.channels import media
from app.domain.macros import saved_replies
from app.lib import ids
from tests.bounding import set_bound
from tests.cast import KEY, Api, all_of, one
from tests.talks import make_channel, make_member, make_saved_reply, receive

TEXT = "Hello {{ contact.first_name }}, {{ member.email }} will call you."


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(email="ada@example.com", first_name="<b>Ada</b>", custom_fields={"plan": "gold"})["id"])


@pytest.fixture
def conversation_id(api: Api, contact_id: str) -> str:
    return str(receive(api.workspace_id, contact_id, make_channel(api.workspace_id)).conversation_id)


def rendered(api: Api, conversation_id: str, reply_id: str, query: str = "") -> dict[str, Any]:
    return dict(api.get(f"conversations/{conversation_id}/saved-replies/{reply_id}{query}").json["data"])


def listed(api: Api, query: str = "") -> list[str]:
    return [each["shortcut"] for each in api.get(f"saved-replies{query}").json["data"]]


def refused(response: Any) -> list[str]:
    assert response.status_code == 422, response.text
    return [each["pointer"] for each in response.get_json(force=True)["errors"]]


def test_a_saved_reply_is_created_and_shown(api: Api) -> None:
    reply_id = make_saved_reply(api, "Refund", TEXT)

    shown = api.get(f"saved-replies/{reply_id}").json["data"]

    times = {name: shown[name] for name in ("created_at", "updated_at")}
    assert shown == {"id": reply_id, "shortcut": "Refund", "text": TEXT, "attachments": [], **times}
    assert reply_id.startswith("srp_")


def test_the_job_names_the_saved_reply_at_once(api: Api) -> None:
    accepted = api.post("saved-replies", {"shortcut": "refund", "text": "Hello"}, key=KEY)
    again = api.post("saved-replies", {"shortcut": "refund", "text": "Hello"}, key=KEY)
    api.apply()

    resource = accepted.json["data"]["resource"]
    assert (accepted.status_code, resource["type"]) == (202, "saved_reply")
    assert resource["url"].endswith(f"/saved-replies/{resource['id']}")
    assert again.json["data"]["id"] == accepted.json["data"]["id"]
    assert listed(api) == ["refund"]


def test_the_list_is_newest_first_and_goes_on_where_its_page_ended(api: Api) -> None:
    for shortcut in ("one", "two", "three"):
        make_saved_reply(api, shortcut)

    first = api.get("saved-replies?limit=2").json

    assert [each["shortcut"] for each in first["data"]] == ["three", "two"]
    assert listed(api, f"?limit=2&cursor={first['meta']['nextCursor']}") == ["one"]


def test_a_search_finds_beginnings_of_shortcuts_and_texts(api: Api) -> None:
    for shortcut, text in (("Refund", "Hello"), ("prefund", "Hello"), ("pay", "Your REFUND"), ("100%", "Straße")):
        make_saved_reply(api, shortcut, text)

    assert listed(api, "?q=reFund") == ["pay", "Refund"]
    assert listed(api, "?q=%25") == []
    assert listed(api, "?q=100%25") == ["100%"]
    assert listed(api, "?q=zebra") == []
    assert refused(api.get("saved-replies?q=")) == ["/q"]


def test_it_is_rendered_for_the_contact_of_a_conversation(api: Api, conversation_id: str) -> None:
    member_id = make_member(api.workspace_id)
    reply_id = make_saved_reply(api, text=TEXT)

    shown = rendered(api, conversation_id, reply_id, f"?member_id={member_id}")

    assert shown["rendered"] == f"Hello <b>Ada</b>, {member_id}@example.com will call you."
    assert shown["missing"] == []
    assert shown["text"] == TEXT
    assert one("SELECT count(*) FROM messages WHERE direction = 'out'") == 0


def test_names_that_print_nothing_are_listed(api: Api, conversation_id: str) -> None:
    reply_id = make_saved_reply(api, text="{{ contact.last_name }}{{ contact.custom_fields.shoe }}{{ member.email }}!")

    shown = rendered(api, conversation_id, reply_id)

    assert shown["rendered"] == "!"
    assert shown["missing"] == ["contact.last_name", "contact.custom_fields.shoe", "member.email"]


def test_loops_and_filters_are_rendered(api: Api, conversation_id: str) -> None:
    reply_id = make_saved_reply(
        api, text="{% if contact.custom_fields.plan == 'gold' %}Dear {{ contact.email | upcase }}{% endif %}"
    )

    assert rendered(api, conversation_id, reply_id)["rendered"] == "Dear ADA@EXAMPLE.COM"


def test_a_template_that_computes_too_much_is_a_conflict(
    api: Api, conversation_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply_id = make_saved_reply(
        api, text="{% for i in (1..9000) %}{% for j in (1..9000) %}{{ i }}{% endfor %}{% endfor %}"
    )
    spent = api.get(f"conversations/{conversation_id}/saved-replies/{reply_id}")
    set_bound(monkeypatch, "COMPUTING_PER_STEP", 10)
    short = make_saved_reply(api, "short", "Hello {{ contact.first_name }}")
    bounded = api.get(f"conversations/{conversation_id}/saved-replies/{short}")

    assert (spent.status_code, spent.get_json(force=True)["code"]) == (409, "template")
    assert (bounded.status_code, bounded.get_json(force=True)["code"]) == (409, "limit")


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({"text": "Hello"}, "/shortcut"),
        ({"shortcut": "hi"}, "/text"),
        ({"shortcut": None, "text": "Hello"}, "/shortcut"),
        ({"shortcut": 7, "text": "Hello"}, "/shortcut"),
        ({"shortcut": "", "text": "Hello"}, "/shortcut"),
        ({"shortcut": "two words", "text": "Hello"}, "/shortcut"),
        ({"shortcut": "/hi", "text": "Hello"}, "/shortcut"),
        ({"shortcut": "line\n", "text": "Hello"}, "/shortcut"),
        ({"shortcut": "x\u2003y", "text": "Hello"}, "/shortcut"),
        ({"shortcut": "x" * 33, "text": "Hello"}, "/shortcut"),
        ({"shortcut": "hi", "text": ""}, "/text"),
        ({"shortcut": "hi", "text": " \n"}, "/text"),
        ({"shortcut": "hi", "text": "x" * 4_097}, "/text"),
        ({"shortcut": "hi", "text": "Hello {{ contact.name "}, "/text"),
        ({"shortcut": "hi", "text": "{% include 'x' %}"}, "/text"),
        ({"shortcut": "hi", "text": "Hello {{ contact.frist_name }}"}, "/text"),
        ({"shortcut": "hi", "text": "Hello {{ conversation.id }}"}, "/text"),
        ({"shortcut": "hi", "text": "Hello {{ steps.a }}"}, "/text"),
        ({"shortcut": "hi", "text": "Hello", "id": "srp_1"}, "/id"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_no_saved_reply_is_pointed_at(api: Api, body: dict[str, Any], at: str) -> None:
    assert refused(api.post("saved-replies", body)) == [at]


def test_a_wrong_name_gets_the_nearest_one(api: Api) -> None:
    made = api.post("saved-replies", {"shortcut": "hi", "text": "{{ contact.frist_name }} {{ member.mail }}"})

    assert [each["detail"] for each in made.get_json(force=True)["errors"]] == [
        "There is no 'contact.frist_name'. Did you mean 'contact.first_name'?",
        "There is no 'member.mail'. Did you mean 'member.email'?",
    ]


def test_a_shortcut_is_unique_in_whatever_case(api: Api, others: Api) -> None:
    reply_id, other_id = make_saved_reply(api, "Straße"), make_saved_reply(api, "other")

    created = api.done(api.post("saved-replies", {"shortcut": "STRASSE", "text": "Hello"}))
    changed = api.done(api.patch(f"saved-replies/{other_id}", {"shortcut": "strasse"}))

    for job in (created, changed):
        assert (job["status"], job["problem"]["status"]) == ("failed", 409)
        assert job["problem"]["conflicting_saved_reply_id"] == reply_id
    assert listed(api) == ["other", "Straße"]
    assert api.done(api.patch(f"saved-replies/{reply_id}", {"shortcut": "STRASSE"}))["status"] == "succeeded"
    make_saved_reply(others, "strasse")


def test_a_shortcut_that_a_queued_write_frees_can_be_taken(api: Api) -> None:
    reply_id = make_saved_reply(api, "hi")
    api.delete(f"saved-replies/{reply_id}")

    make_saved_reply(api, "hi")

    assert listed(api) == ["hi"]


def test_a_saved_reply_is_changed(api: Api) -> None:
    reply_id = make_saved_reply(api, "hi", "Hello")

    job = api.done(api.patch(f"saved-replies/{reply_id}", {"text": "Good day"}))

    assert (job["status"], job["resource"]["id"]) == ("succeeded", reply_id)
    assert api.get(f"saved-replies/{reply_id}").json["data"]["text"] == "Good day"
    assert listed(api) == ["hi"]
    assert refused(api.patch(f"saved-replies/{reply_id}", {"text": "{{ contact.nome }}"})) == ["/text"]


def test_a_saved_reply_is_deleted_once(api: Api) -> None:
    reply_id = make_saved_reply(api)

    first, behind = api.delete(f"saved-replies/{reply_id}"), api.delete(f"saved-replies/{reply_id}")
    api.apply()

    assert api.job(first)["status"] == "succeeded"
    assert api.job(behind)["problem"]["status"] == 404
    assert api.get(f"saved-replies/{reply_id}").status_code == 404
    assert api.patch(f"saved-replies/{reply_id}", {"text": "Hello"}).status_code == 404


def test_a_workspace_has_a_limited_number(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_replies.QUOTA, "most", 1)
    api.post("saved-replies", {"shortcut": "one", "text": "Hello"})
    behind = api.post("saved-replies", {"shortcut": "two", "text": "Hello"})
    api.apply()

    assert api.job(behind)["problem"]["detail"] == "A workspace has at most 1 saved replies. Delete one first."
    assert api.post("saved-replies", {"shortcut": "three", "text": "Hello"}).status_code == 409
    assert listed(api) == ["one"]


def test_only_members_of_the_workspace_can_be_rendered_for(api: Api, others: Api, conversation_id: str) -> None:
    reply_id = make_saved_reply(api)

    for member_id in (make_member(others.workspace_id), ids.new("mem"), "me"):
        path = f"conversations/{conversation_id}/saved-replies/{reply_id}?member_id={member_id}"
        assert refused(api.get(path)) == ["/member_id"]


def test_nothing_is_rendered_for_a_contact_who_is_deleted(api: Api, contact_id: str, conversation_id: str) -> None:
    reply_id = make_saved_reply(api)
    api.done(api.delete(f"contacts/{contact_id}"))

    assert api.get(f"conversations/{conversation_id}/saved-replies/{reply_id}").status_code == 404


def upload(api: Api, content: bytes = b"%PDF-1.7") -> str:
    return str(api.post("uploads?name=terms.pdf", data=content).json["data"]["id"])


def with_files(api: Api, shortcut: str, *upload_ids: str) -> dict[str, Any]:
    """Saves a reply with these files; returns the job."""
    named = [{"upload_id": each} for each in upload_ids]
    return api.done(api.post("saved-replies", {"shortcut": shortcut, "text": "Our terms.", "attachments": named}))


def content_of(api: Api, attachment: dict[str, Any]) -> tuple[int, bytes]:
    found = api.client.get(attachment["address"].removeprefix("https://bellhop.test"))
    return found.status_code, found.data


def send(api: Api, conversation_id: str, upload_id: str) -> dict[str, Any]:
    body = {"text": "Here.", "attachments": [{"upload_id": upload_id}]}
    return api.done(api.post(f"conversations/{conversation_id}/messages", body))


def expire(api: Api) -> None:
    """A day later."""
    rows("UPDATE uploads SET expires_at = expires_at - interval '25 hours'")
    media.delete_expired()


def test_its_files_do_not_expire_and_are_sent_any_number_of_times(api: Api, conversation_id: str) -> None:
    upload_id = upload(api)
    reply_id = with_files(api, "terms", upload_id)["resource"]["id"]
    expire(api)

    [shown] = rendered(api, conversation_id, reply_id)["attachments"]
    sent = [send(api, conversation_id, shown["id"]) for _ in range(2)]

    assert [each["status"] for each in sent] == ["succeeded"] * 2
    assert (shown["id"], shown["name"], shown["bytes"]) == (upload_id, "terms.pdf", 8)
    assert content_of(api, shown) == (200, b"%PDF-1.7")
    for job in sent:
        assert api.get(f"messages/{job['resource']['id']}").json["data"]["attachments"] == [shown]


def test_a_file_that_was_sent_stays_with_its_messages(api: Api, contact_id: str, conversation_id: str) -> None:
    sent, unsent, kept = upload(api), upload(api), upload(api)
    reply_id = with_files(api, "terms", sent, unsent, kept)["resource"]["id"]
    message_id = send(api, conversation_id, sent)["resource"]["id"]

    api.done(api.patch(f"saved-replies/{reply_id}", {"attachments": [{"upload_id": kept}]}))
    expire(api)

    assert set(all_of("SELECT id FROM uploads")) == {sent, kept}
    [attachment] = api.get(f"messages/{message_id}").json["data"]["attachments"]
    assert content_of(api, attachment)[0] == 200
    api.done(api.delete(f"saved-replies/{reply_id}"))
    expire(api)
    assert all_of("SELECT id FROM uploads") == [sent]
    again = {"text": "Here.", "attachments": [{"upload_id": sent}]}
    assert refused(api.post(f"conversations/{conversation_id}/messages", again)) == ["/attachments/0/upload_id"]


def test_an_erased_contact_takes_no_file_of_a_saved_reply_along(
    api: Api, contact_id: str, conversation_id: str
) -> None:
    upload_id = upload(api)
    reply_id = with_files(api, "terms", upload_id)["resource"]["id"]
    send(api, conversation_id, upload_id)

    api.done(api.delete(f"contacts/{contact_id}"))

    [shown] = api.get(f"saved-replies/{reply_id}").json["data"]["attachments"]
    assert content_of(api, shown)[0] == 200


def test_a_file_is_of_one_saved_reply_or_message(api: Api, others: Api, conversation_id: str) -> None:
    taken, attached, theirs = upload(api), upload(api), upload(others)
    with_files(api, "terms", taken)
    send(api, conversation_id, attached)

    for upload_id in (attached, theirs, ids.new("upl"), "upl_1"):
        body = {"shortcut": "other", "text": "Hello", "attachments": [{"upload_id": upload_id}]}
        assert refused(api.post("saved-replies", body)) == ["/attachments/0/upload_id"]
    assert with_files(api, "other", taken)["problem"]["status"] == 422
    assert refused(others.post("saved-replies", {"shortcut": "x", "text": "x", "attachments": [{"upload_id": taken}]}))


def test_who_changed_a_saved_reply_is_in_the_audit_log_once(api: Api) -> None:
    reply_id = make_saved_reply(api, text="x" * 300)
    api.patch(f"saved-replies/{reply_id}", {"shortcut": "money", "attachments": []})
    rows("UPDATE jobs SET token_id = 'vis_1' WHERE due_at IS NOT NULL")
    api.apply()
    api.done(api.delete(f"saved-replies/{reply_id}"))

    deleted, changed, created = api.get("webhooks/audit-log").json["data"]
    assert {each["target"]["id"] for each in (deleted, changed, created)} == {reply_id}
    assert (created["action"], created["detail"]["shortcut"]) == ("saved_replies.create", "refund")
    assert len(created["detail"]["text"]) <= 200
    assert (changed["action"], changed["actor"]["id"]) == ("saved_replies.update", "vis_1")
    assert changed["detail"] == {"shortcut": "money", "files": 0}
    assert (deleted["action"], deleted["detail"]) == ("saved_replies.delete", {"shortcut": "money"})
