"""Macros on pages."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from app.domain.macros import macros
from app.lib import ids
from app.models.macros import Macro
from app.web.macros import macro_forms
from app.web.macros.macro_forms import Row
from tests.cast import Api, all_of, one
from tests.pages import Person
from tests.talks import make_macro, make_member, make_saved_reply

CLOSE = ("close", "", "")


def form(*rows: tuple[str, str, str], do: str = "save", name: str = "Refund", **others: str) -> dict[str, Any]:
    """The form with these rows, each with its kind, choice and text."""
    kinds, choices, texts = zip(*rows, strict=True) if rows else ((), (), ())
    return {"name": name, "do": do, "kind": [*kinds], "choice": [*choices], "text": [*texts], **others}


def make(person: Person, *rows: tuple[str, str, str], **others: str) -> list[dict[str, Any]]:
    """Creates a macro on the page; returns its actions."""
    answer = person.post("macros/new", form(*rows, **others))
    assert answer.status_code == 303, answer.text
    found: list[dict[str, Any]] = Macro.select().order_by(Macro.id.desc()).first().actions
    return found


def test_the_list_says_what_to_do_while_it_is_empty(owner: Person) -> None:
    text = owner.page("macros")

    assert "No macros yet" in text
    assert "A macro does several things" in text
    assert "Make one" in text


def test_an_action_of_every_kind_is_written_and_shown_again(owner: Person, api: Api) -> None:
    reply_id, automation_id, member_id = make_saved_reply(api), api.published(), make_member(api.workspace_id)

    actions = make(
        owner,
        ("reply", "", "Hello {{ contact.first_name }}"),
        ("reply", reply_id, ""),
        ("note", "", "Refunded."),
        ("assign", "me", ""),
        ("assign", "nobody", ""),
        ("assign", member_id, ""),
        ("label", "", "refund\r\n money, back \r\n"),
        ("unlabel", "", "urgent"),
        ("snooze", "days", "2"),
        ("snooze", "until", "2026-12-24T09:00:00Z"),
        ("start_automation", automation_id, ""),
        CLOSE,
    )

    assert actions == [
        {"kind": "reply", "text": "Hello {{ contact.first_name }}"},
        {"kind": "reply", "saved_reply_id": reply_id},
        {"kind": "note", "text": "Refunded."},
        {"kind": "assign", "assignee_id": "me"},
        {"kind": "assign", "assignee_id": None},
        {"kind": "assign", "assignee_id": member_id},
        {"kind": "label", "labels": ["refund", "money, back"]},
        {"kind": "unlabel", "labels": ["urgent"]},
        {"kind": "snooze", "seconds": 2 * 24 * 60 * 60},
        {"kind": "snooze", "until": "2026-12-24T09:00:00Z"},
        {"kind": "start_automation", "automation_id": automation_id},
        {"kind": "close"},
    ]
    assert macro_forms.actions_of([macro_forms.row_of(action) for action in actions]) == actions
    text = owner.page(f"macros/{one('SELECT id FROM macros')}")
    for value in (reply_id, member_id, automation_id, "me", "nobody", "days", "until"):
        assert f'value="{value}" selected' in text
    assert "Answer the contact, then answer the contact, then add a note, then assign the conversation and 8 more" in (
        owner.page("macros")
    )


def test_an_agent_changes_and_deletes_one(agent: Person, api: Api) -> None:
    macro_id = make_macro(api)

    agent.post(f"macros/{macro_id}", form(CLOSE, name="Done"))
    assert "“Done” is saved." in agent.page("macros")
    assert api.get(f"macros/{macro_id}").json["data"]["actions"] == [{"kind": "close"}]
    agent.post(f"macros/{macro_id}/delete")

    assert "The macro “Done” was deleted." in agent.page("macros")
    assert agent.post(f"macros/{macro_id}/delete").status_code == 404
    details = all_of("SELECT detail FROM audit_entries WHERE target_type = 'macro' ORDER BY id")
    assert details == [
        {"name": "Refund", "actions": ["label", "close"]},
        {"name": "Done", "actions": ["close"]},
        {"name": "Done"},
    ]


def test_a_second_click_makes_no_second_one(owner: Person) -> None:
    once = str(uuid.uuid4())
    for _ in range(2):
        make(owner, CLOSE, once=once)

    assert one("SELECT count(*) FROM macros") == 1


def test_they_are_found_by_name(owner: Person, api: Api) -> None:
    make_macro(api)

    assert "Add labels, then close the conversation" in owner.page("macros?q=FUN")
    assert "No macro matches" in owner.page("macros?q=zzz")


def test_without_the_script_buttons_add_move_and_remove_rows(owner: Person) -> None:
    rows = [("note", "", "First"), ("label", "", "second")]

    added = owner.post("macros/new", form(*rows, do="add", add_kind="snooze")).text
    moved = owner.post("macros/new", form(*rows, do="up-1")).text
    removed = owner.post("macros/new", form(*rows, do="remove-0")).text

    assert added.index("First") < added.index("second") < added.index("For how long")
    assert moved.index("second") < moved.index("First")
    assert "First" not in removed
    assert "second" in removed
    assert one("SELECT count(*) FROM macros") == 0


@pytest.mark.parametrize(
    ("button", "kind", "after"),
    [
        ("up-0", "", "ab"),
        ("down-0", "", "ba"),
        ("down-1", "", "ab"),
        ("up-1", "", "ba"),
        ("remove-1", "", "a"),
        ("remove-7", "", "ab"),
        ("add", "pigeon", "ab"),
        ("add", "note", "ab."),
    ],
)
def test_buttons_move_rows(button: str, kind: str, after: str) -> None:
    rows = macro_forms.pressed([Row("note", text="a"), Row("note", text="b")], button, kind)

    assert rows is not None
    assert "".join(row.text or "." for row in rows) == after


def test_no_more_rows_are_added_than_a_macro_may_have() -> None:
    rows = [Row("close")] * macros.MOST_ACTIONS

    assert macro_forms.pressed(rows, "add", "close") == rows
    assert macro_forms.pressed(rows, "save", "") is None


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("reply", "", " "), "Choose a saved reply, or write the text of the answer."),
        (("reply", ids.new("srp"), "Text"), "Choose a saved reply or write a text, not both."),
        (("reply", ids.new("srp"), ""), "There is no such saved reply in this workspace."),
        (("reply", "", "{{ contact.frist_name }}"), "Did you mean 'contact.first_name'?"),
        (("note", "", ""), "Write the text of the note."),
        (("assign", "", ""), "Choose who gets the conversation."),
        (("assign", ids.new("mem"), ""), "There is no such member in this workspace."),
        (("label", "", "\n"), "Write a label."),
        (("label", "", "x" * 101), "Give text of at most 100 characters."),
        (("snooze", "hours", "many"), "Write for how long, as a whole number."),
        (("snooze", "days", "366"), "Snooze for 365 days at most."),
        (("snooze", "until", "tomorrow"), "'tomorrow' is not a time."),
        (("start_automation", "", ""), "Choose an automation."),
        (("start_automation", ids.new("aut"), ""), "There is no such automation in this workspace"),
    ],
)
def test_what_is_wrong_is_said_at_its_row(owner: Person, row: tuple[str, str, str], said: str) -> None:
    answer = owner.post("macros/new", form(CLOSE, row))

    text = answer.text.replace("&#39;", "'")
    assert answer.status_code == 422
    [first, second] = text.partition('id="rows"')[2].partition("</ol>")[0].split("</li>")[:2]
    assert said in second
    assert "wrong" not in first
    assert one("SELECT count(*) FROM macros") == 0


@pytest.mark.parametrize(
    ("fields", "said"),
    [(form(), "Add at least one action."), (form(CLOSE, name=" "), "A name has 1 to 255 characters")],
)
def test_what_is_wrong_with_the_rest_is_said(owner: Person, fields: dict[str, Any], said: str) -> None:
    answer = owner.post("macros/new", fields)

    assert answer.status_code == 422
    assert said in answer.text


def test_more_actions_than_a_macro_may_have_are_refused(owner: Person) -> None:
    assert owner.post("macros/new", form(*[CLOSE] * 21)).status_code == 422


def test_there_are_no_more_than_a_workspace_may_have(owner: Person, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    make_macro(api)
    monkeypatch.setattr(macros.QUOTA, "most", 1)

    answer = owner.post("macros/new", form(CLOSE))

    assert answer.status_code == 409
    assert "A workspace has at most 1 macros." in answer.text


def test_what_was_chosen_and_is_gone_is_said_when_it_is_saved(owner: Person, api: Api) -> None:
    reply_id = make_saved_reply(api)
    macro_id = make_macro(api, {"kind": "reply", "saved_reply_id": reply_id})
    api.done(api.delete(f"saved-replies/{reply_id}"))

    assert "One that is not there any more" in owner.page(f"macros/{macro_id}")
    answer = owner.post(f"macros/{macro_id}", form(("reply", reply_id, "")))

    assert "There is no such saved reply in this workspace." in answer.text


def test_those_of_another_workspace_are_not_there(owner: Person, stranger: Person, api: Api, others: Api) -> None:
    theirs, ours, reply_id = make_macro(others), make_macro(api), make_saved_reply(others)

    for path in (f"macros/{theirs}", f"macros/{ids.new('mac')}", "macros/refund"):
        assert owner.get(path).status_code == 404
        assert owner.post(path, form(CLOSE)).status_code == 404
        assert owner.post(f"{path}/delete").status_code == 404
    assert stranger.get(f"macros/{ours}").status_code == 404
    assert owner.post(f"macros/{ours}", form(("reply", reply_id, ""))).status_code == 422
    assert one("SELECT count(*) FROM macros") == 2


def test_support_changes_them_during_a_visit(support: Person, api: Api) -> None:
    macro_id = make_macro(api)

    assert support.post(f"macros/{macro_id}", form(CLOSE)).status_code == 403
    support.visit()
    assert support.post(f"macros/{macro_id}", form(CLOSE)).status_code == 303

    assert one("SELECT count(*) FROM audit_entries WHERE action = 'macros.update'") == 1
