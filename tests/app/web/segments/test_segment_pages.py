"""Segments on pages: rows of comparisons, a count, and what cannot be rows."""

from __future__ import annotations

import html
from datetime import timedelta
from typing import Any

import pytest

from app import bounds
from app.domain.segments import scans
from app.domain.segments.scans import Counted
from app.lib import clock
from app.models.segments import Segment
from app.web.contacts import segment_forms
from tests.cast import Api, one
from tests.logs import NASTY
from tests.pages import Person

VIP = {"field": "contact.tags", "is": "contains", "value": "vip"}
ROWS = {
    "name": "Regulars",
    "match": "all",
    "field": ["contact.tags", "contact.custom_fields", "contact.last_received_at"],
    "custom": ["", "orders", ""],
    "is": ["contains", "greater_than", "days_less"],
    "value": ["vip", "3", "60"],
}
FILTER = {
    "all": [
        VIP,
        {"field": "contact.custom_fields.orders", "is": "greater_than", "value": "3"},
        {"field": "contact.last_received_at", "is": "less_than", "days_ago": 60},
    ]
}

GROUPS = ROWS | {"join": "all", "match": ["all", "any"], "group": ["0", "1", "1"]}
GROUPED = {"all": [{"all": FILTER["all"][:1]}, {"any": FILTER["all"][1:]}]}


def made(api: Api, condition: dict[str, Any], name: str = "Regulars") -> str:
    return str(api.done(api.post("segments", {"name": name, "filter": condition}))["resource"]["id"])


def test_without_any_the_list_says_what_a_segment_is_for(owner: Person, agent: Person) -> None:
    assert "A segment is a filter of contacts" in owner.page("segments")
    assert "Make one" not in agent.page("segments")


def test_rows_become_a_filter_and_come_back_as_rows(owner: Person) -> None:
    assert owner.post("segments/new", ROWS | {"do": "save"}).status_code == 303

    segment = Segment.select().get()
    assert (segment.name, segment.filter) == ("Regulars", FILTER)
    form = owner.page(f"segments/{segment.id}")
    assert 'value="days_less" selected' in form
    assert 'value="orders"' in form
    listed = owner.page("segments")
    assert "Tags contains vip and orders is more than 3 and Last wrote more than 60 days ago" in listed


def test_what_rows_cannot_show_is_in_words_too(api: Api, owner: Person) -> None:
    made(api, {"not": VIP})

    assert "it is not so that the contact has the tag “vip”" in owner.page("segments")


def test_names_and_values_run_no_script(api: Api, owner: Person, agent: Person) -> None:
    segment_id = made(api, {"field": "contact.first_name", "is": "equals", "value": NASTY}, name=NASTY)

    for path in ("segments", f"segments/{segment_id}", f"contacts?segment_id={segment_id}"):
        assert "<script>alert" not in owner.get(path).text
        assert NASTY in owner.page(path)
    assert "<script>alert" not in agent.get(f"segments/{segment_id}").text


def test_rows_are_added_and_removed_without_losing_what_was_typed(owner: Person) -> None:
    added = owner.post("segments/new", ROWS | {"do": "add-0"}).text
    removed = owner.post("segments/new", ROWS | {"do": "remove-0"}).text

    assert (added.count("<fieldset"), removed.count("<fieldset")) == (4, 2)
    assert 'value="Regulars"' in added
    assert 'value="vip"' not in removed
    assert one("SELECT count(*) FROM segments") == 0


def test_groups_become_a_filter_and_come_back_as_groups(owner: Person) -> None:
    assert owner.post("segments/new", GROUPS | {"do": "save"}).status_code == 303

    segment = Segment.select().get()
    assert segment.filter == GROUPED
    form = owner.page(f"segments/{segment.id}")
    assert (form.count("<legend>Group"), form.count("<legend>Comparison")) == (2, 3)
    said = "(Tags contains vip) and (orders is more than 3 or Last wrote more than 60 days ago)"
    assert said in owner.page("segments")


def test_groups_are_added_and_removed_without_losing_what_was_typed(owner: Person) -> None:
    added, row, removed, last = (
        owner.post("segments/new", fields | {"do": button}).text
        for fields, button in (
            (ROWS, "add-group"),
            (GROUPS, "add-0"),
            (GROUPS, "remove-group-0"),
            (ROWS, "remove-group-0"),
        )
    )

    assert (added.count("<legend>Group"), added.count("<legend>Comparison")) == (2, 4)
    assert row.index("Comparison 2<") < row.index("Group 2<") < row.index("Comparison 3<")
    assert (removed.count("<legend>Group"), removed.count("<legend>Comparison")) == (0, 2)
    assert 'value="orders"' in removed
    assert 'value="any" selected' in removed
    assert last.count("<legend>Comparison") == 3
    assert one("SELECT count(*) FROM segments") == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"custom": ["", " ", ""]}, 'id="h-custom-2"'),
        ({"value": ["vip", "3", "often"]}, 'id="h-value-3"'),
        ({"group": ["0", "0", "0"]}, "Group 2 is empty."),
        ({"group": ["0", "0", "7"]}, "Group 2 is empty."),
    ],
    ids=str,
)
def test_what_is_wrong_in_a_group_is_told_there(owner: Person, changes: dict[str, Any], said: str) -> None:
    answer = owner.post("segments/new", GROUPS | changes | {"do": "save"})

    assert answer.status_code == 422
    assert said in answer.text
    assert one("SELECT count(*) FROM segments") == 0


@pytest.mark.parametrize(
    ("condition", "matches", "is_kept"),
    [
        (GROUPED, ["all", "any"], True),
        ({"any": [{"all": [VIP, VIP]}, {"all": [VIP]}]}, ["all", "all"], True),
        ({"all": [VIP, VIP, {"any": [VIP, VIP]}]}, ["all", "any"], False),
        ({"any": [{"all": [VIP, VIP]}, VIP]}, ["all", "any"], False),
        ({"all": [VIP, {"not": VIP}]}, None, True),
        ({"all": [VIP, {"any": [VIP, {"all": [VIP, VIP]}]}]}, None, True),
        ({"any": [{"all": [VIP, VIP]}] * 6}, None, True),
    ],
    ids=str,
)
def test_groups_mean_what_the_filter_means(
    api: Api, condition: dict[str, Any], matches: list[str] | None, is_kept: bool
) -> None:
    given = segment_forms.given_of("Others", condition)
    made_again = segment_forms.filter_of(given)

    assert (given.text is None, list(given.matches) if matches else None) == (matches is not None, matches)
    assert (made_again == condition) is is_kept
    api.contact(email="ada@example.com", tags=["vip"])
    api.contact(email="bob@example.com")
    assert scans.count(api.workspace_id, made_again) == scans.count(api.workspace_id, condition)


def test_a_count_names_some_of_those_who_are_in_it(api: Api, owner: Person) -> None:
    api.contact(email="ada@example.com", first_name=NASTY, tags=["vip"])
    api.contact(email="bob@example.com")
    fields = {"name": "", "field": "contact.tags", "custom": "", "is": "contains", "value": "VIP", "do": "count"}

    answer = owner.post("segments/new", fields)

    assert "<strong>1</strong> contact is in it now." in answer.text
    assert f"contacts/{one('SELECT id FROM contacts ORDER BY id LIMIT 1')}" in answer.text
    assert "Counted at <time" in answer.text
    assert NASTY not in answer.text
    assert one("SELECT count(*) FROM segments") == 0


def test_a_count_that_ends_early_says_at_least(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "count", lambda *_: Counted(70_000, False, []))

    assert "<strong>At least 70,000</strong> contacts" in owner.post("segments/new", ROWS | {"do": "count"}).text


def test_a_count_waits_for_others_and_keeps_what_was_typed(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_SEGMENTS", bounds.Places(bounds.Bound("segments", 0, "counts")))

    answer = owner.post("segments/new", ROWS | {"do": "count"})

    assert 'class="flash error"' in answer.text
    assert 'value="orders"' in answer.text
    assert "Counted at" not in answer.text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": " "}, "h-name"),
        ({"value": ["vip", "3", "often"]}, "h-value-3"),
        ({"value": ["vip", " ", "60"]}, "h-value-2"),
        ({"custom": ["", " ", ""]}, "h-custom-2"),
        ({"is": ["nearly", "exists", "exists"]}, "h-is-1"),
        ({"field": ["contact.nothing", "contact.tags", "contact.tags"]}, "h-field-1"),
        ({"field": [], "custom": [], "is": [], "value": []}, "Say which contacts are meant."),
    ],
    ids=str,
)
def test_what_is_wrong_stands_at_its_row(owner: Person, changes: dict[str, Any], said: str) -> None:
    answer = owner.post("segments/new", ROWS | changes | {"do": "save"})

    assert answer.status_code == 422
    assert said in answer.text
    assert one("SELECT count(*) FROM segments") == 0


def test_the_faults_of_the_name_and_of_the_rows_are_told_together(owner: Person) -> None:
    answer = owner.post("segments/new", ROWS | {"name": " ", "custom": ["", "", ""], "do": "save"})

    assert answer.status_code == 422
    assert "h-name" in answer.text
    assert "h-custom-2" in answer.text


def test_a_filter_that_is_no_list_of_comparisons_is_edited_as_json(api: Api, owner: Person) -> None:
    segment_id = made(api, {"not": VIP})
    assert '{\n  "not": {' in owner.page(f"segments/{segment_id}")

    wrong = owner.post(f"segments/{segment_id}", {"name": "Others", "filter": "{", "do": "save"})
    assert "This is not JSON: " in wrong.text
    right = owner.post(f"segments/{segment_id}", {"name": "Others", "filter": '{"any": []}', "do": "save"})
    assert right.status_code == 422
    nested = '{"not": {"field": "contact.email", "is": "exists"}}'
    assert owner.post(f"segments/{segment_id}", {"name": "Others", "filter": nested, "do": "save"}).status_code == 303
    assert Segment.get_by_id(segment_id).filter == {"not": {"field": "contact.email", "is": "exists"}}


def test_what_is_wrong_with_json_is_told_with_its_line(api: Api, owner: Person) -> None:
    segment_id = made(api, {"not": VIP})
    text = '{\n  "not": {\n    "field": "contact.email",\n    "is": "nearly"\n  }\n}'

    for typed, said in ((text, "Line 4: Give one of"), (" ".join(text.split()), "/not/is: Give one of")):
        answer = owner.post(f"segments/{segment_id}", {"name": "Others", "filter": typed, "do": "save"})

        assert answer.status_code == 422
        assert said in answer.text
        assert typed in html.unescape(answer.text)
    assert Segment.get_by_id(segment_id).filter == {"not": VIP}


@pytest.mark.parametrize(
    "comparison",
    [
        {"field": "contact.custom_fields.note", "is": "equals", "value": "two\nlines"},
        {"field": "contact.custom_fields. note ", "is": "exists"},
        {"field": "contact.custom_fields.sum", "is": "less_than", "value": 1e20},
        {"field": "contact.email", "is": "not_equals", "value": ""},
        {"field": "contact.tags", "is": "one_of", "value": ["a", "b"]},
        {"field": "contact.last_sent_at", "is": "at_most", "days_ago": 3},
    ],
    ids=str,
)
def test_a_comparison_that_a_row_would_change_is_no_row(comparison: dict[str, Any]) -> None:
    given = segment_forms.given_of("Others", comparison)

    assert given.text is not None
    assert segment_forms.filter_of(given) == comparison


def test_its_contacts_are_listed(api: Api, owner: Person) -> None:
    api.contact(email="ada@example.com", tags=["vip"])
    api.contact(email="bob@example.com")
    segment_id = made(api, VIP)

    assert f"contacts?segment_id={segment_id}" in owner.page(f"segments/{segment_id}")
    listed = owner.page(f"contacts?segment_id={segment_id}")

    assert "ada@example.com" in listed
    assert "bob@example.com" not in listed
    lost = owner.get("contacts?segment_id=seg_01kaj5bd40e6rr3f5y2kq0w9xz")
    assert (lost.status_code, "There is no such segment" in lost.text) == (422, True)


def test_the_contacts_of_another_workspaces_segment_are_not_listed(api: Api, others: Api, owner: Person) -> None:
    api.contact(email="ada@example.com", tags=["vip"])
    theirs = others.done(others.post("segments", {"name": "Theirs", "filter": VIP}))["resource"]["id"]

    listed = owner.get(f"contacts?segment_id={theirs}")

    assert (listed.status_code, "There is no such segment" in listed.text) == (422, True)
    assert "ada@example.com" not in listed.text
    assert "Theirs" not in listed.text


def test_one_that_is_used_is_not_deleted(api: Api, owner: Person) -> None:
    used, free = made(api, VIP), made(api, VIP)
    later = {"name": "Sale", "segment_id": used, "message": {"text": "Hello"}}
    later["send_at"] = (clock.now() + timedelta(days=30)).isoformat()
    api.done(api.post("broadcasts", later))

    owner.post(f"segments/{used}/delete", {})
    assert "is scheduled for this segment" in owner.page("segments")
    owner.post(f"segments/{free}/delete", {})
    assert [segment.id for segment in Segment.select()] == [used]


def test_agents_see_and_owners_manage(api: Api, owner: Person, agent: Person, stranger: Person) -> None:
    segment_id = made(api, VIP)

    assert "Tags contains vip" in agent.page(f"segments/{segment_id}")
    assert 'name="do"' not in agent.page(f"segments/{segment_id}")
    assert agent.post(f"segments/{segment_id}", {"do": "save"}).status_code == 403
    assert agent.get("segments/new").status_code == 403
    assert stranger.get(f"segments/{segment_id}").status_code == 404
    assert stranger.get("segments").status_code == 404
    assert owner.get("segments/seg_01kaj5bd40e6rr3f5y2kq0w9xz").status_code == 404


def test_support_staff_see_the_filter_in_words(api: Api, support: Person) -> None:
    segment_id = made(api, VIP)

    assert "Tags contains vip" in support.page(f"segments/{segment_id}")
    assert 'value="save"' not in support.page("segments/new")
