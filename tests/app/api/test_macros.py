"""Macros in the API: writing them, and applying all of their actions or none."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from app.channels.base import ChannelKind
from app.database import rows
from app.domain.conversations import notes
from app.domain.macros import macros
from app.lib import clock, ids
from tests.bounding import set_bound
from tests.cast import Api, accept, all_of, event_kinds, one
from tests.talks import close, make_channel, make_macro, make_member, make_saved_reply, receive

REPLY = {"kind": "reply", "text": "Hello {{ contact.first_name }}."}
NOTE = {"kind": "note", "text": "Refunded to {{ contact.email }} by {{ member.email }}."}
LABEL = {"kind": "label", "labels": ["refund"]}
CLOSE = {"kind": "close"}


@pytest.fixture
def contact_id(api: Api) -> str:
    return str(api.contact(email="ada@example.com", first_name="Ada")["id"])


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_channel(api.workspace_id)


@pytest.fixture
def conversation_id(api: Api, contact_id: str, channel_id: str) -> str:
    return str(receive(api.workspace_id, contact_id, channel_id).conversation_id)


def applied(api: Api, conversation_id: str, macro_id: str, **body: str) -> dict[str, Any]:
    """Applies the macro; returns the job."""
    return api.done(api.post(f"conversations/{conversation_id}/macros/{macro_id}", body or None))


def apply(api: Api, conversation_id: str, *actions: dict[str, Any], **body: str) -> dict[str, Any]:
    return applied(api, conversation_id, make_macro(api, *actions), **body)


def shown(api: Api, conversation_id: str) -> dict[str, Any]:
    return dict(api.get(f"conversations/{conversation_id}").json["data"])


def texts() -> list[str]:
    return all_of("SELECT text FROM messages WHERE direction = 'out' ORDER BY id")


def pointers(response: Any) -> list[str]:
    assert response.status_code == 422, response.text
    return [each["pointer"] for each in response.get_json(force=True)["errors"]]


def refusal(job: dict[str, Any]) -> tuple[int, str, str]:
    """Status, code and pointer of a job that failed."""
    assert job["status"] == "failed", job
    return job["problem"]["status"], job["problem"]["code"], job["problem"]["pointer"]


def test_a_macro_is_created_shown_and_listed(api: Api) -> None:
    macro_id = make_macro(api, REPLY, CLOSE)

    found = api.get(f"macros/{macro_id}").json["data"]

    times = {name: found[name] for name in ("created_at", "updated_at")}
    assert found == {"id": macro_id, "name": "Refund", "actions": [REPLY, CLOSE], **times}
    assert api.get("macros").json["data"] == [found]
    assert api.get("macros?q=FUN").json["data"] == [found]
    assert api.get("macros?q=%25").json["data"] == []
    assert macro_id.startswith("mac_")


def test_all_actions_are_taken_as_one_job(api: Api, contact_id: str, conversation_id: str) -> None:
    member_id, automation_id = make_member(api.workspace_id), api.published()
    saved = {"kind": "reply", "saved_reply_id": make_saved_reply(api, text="{{ contact.email }}")}
    start = {"kind": "start_automation", "automation_id": automation_id}
    assign = {"kind": "assign", "assignee_id": member_id}
    macro_id = make_macro(api, REPLY, saved, NOTE, assign, LABEL, start, CLOSE)

    job = applied(api, conversation_id, macro_id)

    conversation = shown(api, conversation_id)
    assert (job["status"], job["kind"], job["resource"]["id"]) == ("succeeded", "macros.apply", conversation_id)
    assert texts() == ["Hello Ada.", "ada@example.com"]
    assert all_of("SELECT text FROM notes") == ["Refunded to ada@example.com by ."]
    assert (conversation["status"], conversation["labels"]) == ("closed", ["refund"])
    assert conversation["assignee_id"] == member_id
    assert one("SELECT automation_id FROM runs WHERE contact_id = %s", contact_id) == automation_id
    assert event_kinds(api.workspace_id)[-3:] == [
        "conversation.assigned",
        "conversation.labelled",
        "conversation.closed",
    ]
    assert one("SELECT count(*) FROM events WHERE job_id = %s", job["id"]) == 3


def test_the_author_is_the_token(api: Api, conversation_id: str) -> None:
    apply(api, conversation_id, REPLY, NOTE, member_id=make_member(api.workspace_id))

    token_id = api.get("/api/v1/auth/me").json["data"]["token"]["id"]
    written = all_of("SELECT author FROM messages WHERE direction = 'out' UNION ALL SELECT author FROM notes")
    assert written == [{"type": "api", "id": token_id}] * 2


def test_the_author_is_the_member_of_a_page(api: Api, contact_id: str, conversation_id: str) -> None:
    member_id = make_member(api.workspace_id)
    macro_id = make_macro(api, REPLY, NOTE, {"kind": "assign", "assignee_id": "me"})
    job = accept(api.workspace_id, "macros.apply", {"macro_id": macro_id, "contact_id": contact_id}, conversation_id)
    rows("UPDATE jobs SET token_id = %s WHERE id = %s", (member_id, job.id))
    api.apply()

    assert one("SELECT author FROM messages WHERE direction = 'out'") == {"type": "member", "id": member_id}
    assert one("SELECT text FROM notes") == f"Refunded to ada@example.com by {member_id}@example.com."
    assert shown(api, conversation_id)["assignee_id"] == member_id
    assert one("SELECT held_at IS NOT NULL FROM conversations")


def test_a_token_applies_it_on_behalf_of_a_member(api: Api, conversation_id: str) -> None:
    member_id = make_member(api.workspace_id)

    apply(api, conversation_id, NOTE, {"kind": "assign", "assignee_id": "me"}, member_id=member_id)

    assert one("SELECT text FROM notes") == f"Refunded to ada@example.com by {member_id}@example.com."
    assert shown(api, conversation_id)["assignee_id"] == member_id


def test_labels_are_added_to_the_others_and_removed(api: Api, conversation_id: str) -> None:
    api.done(api.patch(f"conversations/{conversation_id}", {"labels": ["urgent", "vip"]}))

    apply(
        api,
        conversation_id,
        {"kind": "label", "labels": [" refund ", "vip"]},
        {"kind": "unlabel", "labels": ["urgent", "x"]},
    )

    assert shown(api, conversation_id)["labels"] == ["refund", "vip"]


def test_a_conversation_is_snoozed_for_a_time_or_until_one(api: Api, conversation_id: str) -> None:
    apply(api, conversation_id, {"kind": "snooze", "seconds": 3600})
    first = datetime.fromisoformat(shown(api, conversation_id)["snoozed_until"])
    at = (clock.now() + timedelta(days=3)).isoformat(timespec="seconds")
    api.contact(email="ada@example.com", custom_fields={"call_at": at})
    apply(api, conversation_id, {"kind": "snooze", "until": "{{ contact.custom_fields.call_at }}"})

    assert timedelta(minutes=59) < first - clock.now() < timedelta(minutes=61)
    assert datetime.fromisoformat(shown(api, conversation_id)["snoozed_until"]) == datetime.fromisoformat(at)


def test_a_reply_opens_a_closed_conversation(api: Api, contact_id: str, conversation_id: str) -> None:
    close(api.workspace_id, contact_id)

    apply(api, conversation_id, REPLY)

    assert shown(api, conversation_id)["status"] == "open"


def test_a_saved_reply_is_sent_with_its_files_each_time(api: Api, conversation_id: str) -> None:
    upload_id = api.post("uploads?name=terms.pdf", data=b"%PDF-1.7").json["data"]["id"]
    body = {"shortcut": "terms", "text": "Our terms.", "attachments": [{"upload_id": upload_id}]}
    saved = api.done(api.post("saved-replies", body))["resource"]["id"]
    macro_id = make_macro(api, {"kind": "reply", "saved_reply_id": saved})

    for _ in range(2):
        assert applied(api, conversation_id, macro_id)["status"] == "succeeded"

    sent = all_of("SELECT attachments FROM messages WHERE direction = 'out'")
    assert [[each["id"] for each in attachments] for attachments in sent] == [[upload_id]] * 2


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "nobody": ({"kind": "assign", "assignee_id": "me"}, "", "nobody"),
    "opted out": (REPLY, "UPDATE contacts SET opted_out = true", "opted_out"),
    "channel deleted": (REPLY, "UPDATE channels SET deleted_at = now()", "channel_deleted"),
    "blank": ({"kind": "reply", "text": "{{ contact.last_name }}"}, "", "message"),
    "too long": (
        {"kind": "reply", "text": "{{ contact.first_name }}"},
        "UPDATE contacts SET first_name = repeat('x', 4097)",
        "message",
    ),
    "computing": (
        {"kind": "reply", "text": "{% for i in (1..9000) %}{% for j in (1..9000) %}x{% endfor %}{% endfor %}"},
        "",
        "template",
    ),
    "blank note": ({"kind": "note", "text": "{{ contact.last_name }}"}, "", "template"),
    "no time": ({"kind": "snooze", "until": "{{ contact.first_name }}"}, "", "template"),
    "past": ({"kind": "snooze", "until": "2020-01-01T00:00:00Z"}, "", "time"),
    "far": ({"kind": "snooze", "until": "2120-01-01T00:00:00Z"}, "", "time"),
    "labels": (
        {"kind": "label", "labels": ["refund"]},
        "UPDATE conversations SET labels = ARRAY(SELECT n::text FROM generate_series(1, 20) AS n)",
        "limit",
    ),
}


@pytest.mark.parametrize(("action", "before", "code"), REFUSED.values(), ids=REFUSED)
def test_nothing_happens_if_an_action_is_refused(
    api: Api, conversation_id: str, action: dict[str, Any], before: str, code: str
) -> None:
    first = {"kind": "note", "text": "Applied."}
    macro_id = make_macro(api, first, {"kind": "unlabel", "labels": ["1"]} if code != "limit" else first, action, CLOSE)
    if before:
        rows(before)
    stored, happened = shown(api, conversation_id), one("SELECT count(*) FROM events")

    job = applied(api, conversation_id, macro_id)

    assert refusal(job) == (409, code, "/actions/2")
    assert job["problem"]["detail"].startswith(f"Action 3 ({action['kind']}): ")
    assert shown(api, conversation_id) == stored
    assert one("SELECT count(*) FROM notes") == 0
    assert texts() == []
    assert one("SELECT count(*) FROM events") == happened


def test_a_closed_window_refuses_it(api: Api, conversation_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChannelKind, "window", timedelta(hours=24))

    assert refusal(apply(api, conversation_id, LABEL, REPLY)) == (409, "window_closed", "/actions/1")
    assert shown(api, conversation_id)["labels"] == []
    assert texts() == []


def test_a_closed_conversation_cannot_be_snoozed(api: Api, conversation_id: str) -> None:
    assert refusal(apply(api, conversation_id, CLOSE, {"kind": "snooze", "seconds": 60})) == (
        409,
        "closed",
        "/actions/1",
    )
    assert shown(api, conversation_id)["status"] == "open"


def test_a_full_conversation_takes_no_note(api: Api, conversation_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MOST_NOTES", 1)

    assert refusal(apply(api, conversation_id, NOTE, NOTE)) == (409, "limit", "/actions/1")
    assert one("SELECT count(*) FROM notes") == 0


def test_all_templates_share_one_budget(api: Api, conversation_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    macro_id = make_macro(api, REPLY, REPLY)
    set_bound(monkeypatch, "COMPUTING_PER_STEP", 80)

    assert refusal(applied(api, conversation_id, macro_id)) == (409, "limit", "/actions/1")


def test_what_has_gone_since_it_was_written_refuses_it(api: Api, conversation_id: str) -> None:
    member_id, reply_id = make_member(api.workspace_id), make_saved_reply(api)
    automation_id, other_id = api.published(), api.published()
    named = [
        ({"kind": "assign", "assignee_id": member_id}, "gone"),
        ({"kind": "reply", "saved_reply_id": reply_id}, "gone"),
        ({"kind": "start_automation", "automation_id": automation_id}, "gone"),
        ({"kind": "start_automation", "automation_id": other_id}, "not_published"),
    ]
    written = [(make_macro(api, LABEL, action), code) for action, code in named]
    rows("DELETE FROM members WHERE id = %s", (member_id,))
    api.done(api.delete(f"saved-replies/{reply_id}"))
    api.done(api.delete(f"automations/{automation_id}"))
    api.done(api.post(f"automations/{other_id}/unpublish"))

    for macro_id, code in written:
        assert refusal(applied(api, conversation_id, macro_id)) == (409, code, "/actions/1")
    assert shown(api, conversation_id)["labels"] == []


def test_a_contact_who_may_not_enter_again_refuses_it(api: Api, contact_id: str, conversation_id: str) -> None:
    start = {"kind": "start_automation", "automation_id": api.published(reentry="once")}
    macro_id = make_macro(api, LABEL, start)
    applied(api, conversation_id, macro_id)

    again = applied(api, conversation_id, macro_id)

    assert refusal(again) == (409, "reentry", "/actions/1")
    assert again["problem"]["conflicting_run_id"] == one("SELECT id FROM runs")


def test_a_macro_that_fails_keeps_no_other_back(api: Api, conversation_id: str) -> None:
    wrong, right = make_macro(api, LABEL, {"kind": "assign", "assignee_id": "me"}), make_macro(api, NOTE)
    path = f"conversations/{conversation_id}/macros"

    jobs = [api.post(f"{path}/{macro_id}") for macro_id in (right, wrong, right)]
    api.apply()

    assert [api.job(each)["status"] for each in jobs] == ["succeeded", "failed", "succeeded"]
    assert one("SELECT count(*) FROM notes") == 2
    assert shown(api, conversation_id)["labels"] == []


def test_a_macro_that_was_deleted_meanwhile_is_not_found(api: Api, conversation_id: str) -> None:
    macro_id = make_macro(api)
    api.delete(f"macros/{macro_id}")
    behind = api.post(f"conversations/{conversation_id}/macros/{macro_id}")
    api.apply()

    assert api.job(behind)["problem"]["status"] == 404
    assert api.post(f"conversations/{conversation_id}/macros/{macro_id}").status_code == 404


def test_a_macro_can_be_applied_before_it_is_written(api: Api, conversation_id: str) -> None:
    made = api.post("macros", {"name": "Close", "actions": [CLOSE]})
    used = api.post(f"conversations/{conversation_id}/macros/{made.json['data']['resource']['id']}")
    api.apply()

    assert api.job(used)["status"] == "succeeded"
    assert shown(api, conversation_id)["status"] == "closed"


@pytest.mark.parametrize(
    ("action", "at"),
    [
        ({}, "/kind"),
        ({"kind": 7}, "/kind"),
        ({"kind": "replay"}, "/kind"),
        ({"kind": "close", "status": "closed"}, "/status"),
        ({"kind": "reply"}, ""),
        ({"kind": "reply", "text": "Hi", "saved_reply_id": "srp_01kaj5bd40e6rr3f5y2kq0w9xz"}, ""),
        ({"kind": "reply", "text": ""}, "/text"),
        ({"kind": "reply", "text": " "}, "/text"),
        ({"kind": "reply", "text": "x" * 4_097}, "/text"),
        ({"kind": "reply", "text": "{{ contact.frist_name }}"}, "/text"),
        ({"kind": "reply", "text": "{{ conversation.id }}"}, "/text"),
        ({"kind": "reply", "saved_reply_id": "srp_1"}, "/saved_reply_id"),
        ({"kind": "reply", "saved_reply_id": "srp_01kaj5bd40e6rr3f5y2kq0w9xz"}, "/saved_reply_id"),
        ({"kind": "note"}, "/text"),
        ({"kind": "note", "text": "x" * 10_001}, "/text"),
        ({"kind": "note", "text": "{% if %}"}, "/text"),
        ({"kind": "assign"}, "/assignee_id"),
        ({"kind": "assign", "assignee_id": "you"}, "/assignee_id"),
        ({"kind": "assign", "assignee_id": "mem_01kaj5bd40e6rr3f5y2kq0w9xz"}, "/assignee_id"),
        ({"kind": "label"}, "/labels"),
        ({"kind": "label", "labels": []}, "/labels"),
        ({"kind": "label", "labels": [" "]}, "/labels/0"),
        ({"kind": "label", "labels": ["x"] * 21}, "/labels"),
        ({"kind": "unlabel", "labels": "x"}, "/labels"),
        ({"kind": "snooze"}, ""),
        ({"kind": "snooze", "seconds": 0}, "/seconds"),
        ({"kind": "snooze", "seconds": 365 * 86_400 + 1}, "/seconds"),
        ({"kind": "snooze", "until": "tomorrow"}, "/until"),
        ({"kind": "snooze", "until": "{{ contact.tomorow }}"}, "/until"),
        ({"kind": "start_automation"}, "/automation_id"),
        ({"kind": "start_automation", "automation_id": "aut_01kaj5bd40e6rr3f5y2kq0w9xz"}, "/automation_id"),
    ],
    ids=lambda value: str(value)[:70],
)
def test_what_is_no_action_is_pointed_at(api: Api, action: dict[str, Any], at: str) -> None:
    macro_id = make_macro(api)

    for response in (
        api.post("macros", {"name": "Refund", "actions": [CLOSE, action]}),
        api.patch(f"macros/{macro_id}", {"actions": [CLOSE, action]}),
    ):
        assert pointers(response) == [f"/actions/1{at}"]


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({"actions": [CLOSE]}, "/name"),
        ({"name": "Refund"}, "/actions"),
        ({"name": " ", "actions": [CLOSE]}, "/name"),
        ({"name": "Refund", "actions": []}, "/actions"),
        ({"name": "Refund", "actions": [CLOSE] * 21}, "/actions"),
        ({"name": "Refund", "actions": CLOSE}, "/actions"),
        ({"name": "Refund", "actions": ["close"]}, "/actions/0"),
        ({"name": "Refund", "actions": [CLOSE], "shared": True}, "/shared"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_no_macro_is_pointed_at(api: Api, body: dict[str, Any], at: str) -> None:
    assert pointers(api.post("macros", body)) == [at]


def test_a_macro_names_nothing_of_other_workspaces(api: Api, others: Api) -> None:
    theirs = [
        {"kind": "assign", "assignee_id": make_member(others.workspace_id)},
        {"kind": "reply", "saved_reply_id": make_saved_reply(others)},
        {"kind": "start_automation", "automation_id": others.published()},
    ]

    refused = api.post("macros", {"name": "Refund", "actions": theirs})

    assert pointers(refused) == ["/actions/0/assignee_id", "/actions/1/saved_reply_id", "/actions/2/automation_id"]


def test_a_draft_cannot_be_started(api: Api) -> None:
    draft = api.automation()["id"]

    refused = api.post("macros", {"name": "Start", "actions": [{"kind": "start_automation", "automation_id": draft}]})

    assert pointers(refused) == ["/actions/0/automation_id"]


def test_what_a_queued_write_makes_can_be_named(api: Api) -> None:
    draft = api.automation()["id"]
    api.post(f"automations/{draft}/publish")
    saved = api.post("saved-replies", {"shortcut": "hi", "text": "Hi"}).json["data"]["resource"]["id"]
    lost = api.post("saved-replies", {"shortcut": "HI", "text": "Hi"}).json["data"]["resource"]["id"]
    start = {"kind": "start_automation", "automation_id": draft}

    made = api.post("macros", {"name": "All", "actions": [start, {"kind": "reply", "saved_reply_id": saved}]})
    failed = api.post("macros", {"name": "Lost", "actions": [start, {"kind": "reply", "saved_reply_id": lost}]})
    api.apply()

    assert api.job(made)["status"] == "succeeded"
    problem = api.job(failed)["problem"]
    assert (problem["status"], problem["errors"][0]["pointer"]) == (422, "/actions/1/saved_reply_id")


def test_a_macro_is_changed_and_deleted(api: Api, conversation_id: str) -> None:
    macro_id = make_macro(api, CLOSE)

    api.done(api.patch(f"macros/{macro_id}", {"name": "Label", "actions": [LABEL]}))
    applied(api, conversation_id, macro_id)
    found = api.get(f"macros/{macro_id}").json["data"]
    gone = api.done(api.delete(f"macros/{macro_id}"))

    assert (found["name"], found["actions"]) == ("Label", [LABEL])
    assert (shown(api, conversation_id)["status"], shown(api, conversation_id)["labels"]) == ("open", ["refund"])
    assert gone["status"] == "succeeded"
    assert api.get(f"macros/{macro_id}").status_code == 404


def test_a_workspace_has_a_limited_number(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macros.QUOTA, "most", 1)
    make_macro(api)

    assert api.post("macros", {"name": "Another", "actions": [CLOSE]}).status_code == 409


def test_a_token_that_may_not_start_automations_cannot_write_a_macro_that_does(api: Api, conversation_id: str) -> None:
    start = {"kind": "start_automation", "automation_id": api.published()}
    inbox, both = api.restricted_to("inbox"), api.restricted_to("inbox", "automations")
    body = {"name": "Start", "actions": [start]}

    assert inbox.post("macros", body).status_code == 403
    assert inbox.patch(f"macros/{make_macro(api)}", body).status_code == 403
    assert both.post("macros", body).status_code == 202
    assert applied(inbox, conversation_id, make_macro(api, start))["status"] == "succeeded"


def test_only_members_of_the_workspace_can_be_acted_for(api: Api, others: Api, conversation_id: str) -> None:
    path = f"conversations/{conversation_id}/macros/{make_macro(api)}"

    for stranger in (make_member(others.workspace_id), ids.new("mem"), "me"):
        assert pointers(api.post(path, {"member_id": stranger})) == ["/member_id"]


def test_a_member_who_was_removed_meanwhile_refuses_it(api: Api, conversation_id: str) -> None:
    member_id = make_member(api.workspace_id)
    accepted = api.post(f"conversations/{conversation_id}/macros/{make_macro(api)}", {"member_id": member_id})
    rows("DELETE FROM members WHERE id = %s", (member_id,))

    job = api.done(accepted)

    assert (job["status"], job["problem"]["code"]) == ("failed", "gone")
    assert shown(api, conversation_id)["status"] == "open"


def test_a_conversation_whose_contact_is_deleted_takes_no_macro(
    api: Api, contact_id: str, conversation_id: str
) -> None:
    macro_id, accepted = make_macro(api, NOTE), api.delete(f"contacts/{contact_id}")
    used = api.post(f"conversations/{conversation_id}/macros/{macro_id}")
    api.done(accepted)

    assert api.job(used)["problem"]["status"] == 404
    assert one("SELECT count(*) FROM notes") == 0
