"""Imports on pages: a file, its progress, its bad lines."""

from __future__ import annotations

import io
import json
import re
import time
import uuid
from contextlib import ExitStack
from typing import Any

import pytest
from werkzeug.test import TestResponse

from app import bounds
from app.database import rows
from app.domain.lifecycle import import_lines
from tests.cast import Api, all_of, apply, one
from tests.pages import Person

IMPORT = "contacts/import"
CSV = (
    "email,first_name,tags,custom_fields.plan,opted_out\r\n"
    "ada@example.com,Ada,vip;london,gold,\r\n"
    ",,,,\r\n"
    "nobody,,,,maybe\r\n"
)


def send(who: Person, content: str | bytes, name: str = "contacts.csv", **fields: Any) -> TestResponse:
    raw = content.encode() if isinstance(content, str) else content
    return who.post(IMPORT, {"file": (io.BytesIO(raw), name)} | fields, content_type="multipart/form-data")


def imported(who: Person, content: str | bytes, name: str = "contacts.csv") -> str:
    """Imports the file to its end; returns the path of its page."""
    answer = send(who, content, name)
    assert answer.status_code == 303, answer.text
    apply(who.workspace_id)
    return str(answer.headers["Location"])


def contacts() -> list[Any]:
    return all_of("SELECT row_to_json(contacts) FROM contacts ORDER BY id")


def test_a_table_is_imported_and_its_bad_lines_are_told(owner: Person) -> None:
    path = imported(owner, CSV)

    [ada] = contacts()
    assert (ada["email"], ada["first_name"], ada["tags"]) == ("ada@example.com", "Ada", ["london", "vip"])
    assert (ada["custom_fields"], ada["opted_out"]) == ({"plan": "gold"}, False)
    text = owner.page(path)
    assert "2 of 2" in text
    assert "Write true or false." in text
    assert owner.get(f"{path}?format=json").json == [
        {"line": 4, "field": "opted_out", "detail": "Write true or false."}
    ]
    assert owner.get(f"{path}?format=csv").text.splitlines()[1] == "4,opted_out,Write true or false."


def test_lines_of_json_are_imported_as_by_the_api(owner: Person) -> None:
    lines = [{"email": "ada@example.com", "custom_fields": {"n": 1}}, {"email": "nobody", "colour": 1}]

    path = imported(owner, "\ufeff" + "\n".join(map(json.dumps, lines)) + "\n{", "contacts.jsonl")

    assert [contact["email"] for contact in contacts()] == ["ada@example.com"]
    faults = owner.get(f"{path}?format=json").json
    assert sorted((fault["line"], fault["field"]) for fault in faults) == [(2, "colour"), (2, "email"), (3, "")]


@pytest.mark.parametrize("text", ["email;tags\nada@example.com;a,b\n", "email\ttags\nada@example.com\ta,b\n"])
def test_a_table_may_be_separated_otherwise(owner: Person, text: str) -> None:
    imported(owner, b"\xef\xbb\xbf" + text.encode())

    assert contacts()[0]["tags"] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "The first line must name the columns"),
        ("email\n", "There are no contacts below"),
        ("email,colour\na@example.com,red\n", "There is no column 'colour'"),
        ("email,email\na@example.com,b@example.com\n", "is there twice"),
        ("email\n" + "\n".join(["a@example.com"] * 10_001), "at most 10,000 contacts"),
        ("{}\n" * 10_001, "at most 10,000 lines"),
        ('[{"email": "a@example.com"', "The file is not valid JSON"),
        ("[]", "at least one contact"),
        ("email\ngrößer".encode() + b"\xff\n", "The file is not text in UTF-8"),
        (b"email\n\x81\n", "The file is not text in UTF-8"),
        ('email,"first\na@example.com,Ann\n', "A quotation mark in line 1 is not closed"),
        ("\0\0\0", "There is no column"),
        ("<script>alert(1)</script>\n", "There is no column"),
        ("x" * (import_lines.MOST_BYTES + 1), "The file is larger than 16 MiB"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_file_that_cannot_be_read_is_refused_at_its_field(owner: Person, content: str | bytes, sentence: str) -> None:
    answer = send(owner, content)

    assert answer.status_code == 422
    assert sentence in answer.text.replace("&#39;", "'")
    assert "<script>alert" not in answer.text
    assert one("SELECT count(*) FROM jobs") == 0


MANY = import_lines.MOST_BYTES - 100
# Of as many bytes as a file may have.
BOMBS = {
    "one cell": b"email\n" + b'"' * MANY,
    "16 million cells": b"email\n" + b"," * MANY,
    "16 million rows": b"email\n" + b"\n" * MANY,
    "16 million columns": b"email" + b"," * MANY,
    "14,000 columns": b",".join(b"custom_fields.%x" % number for number in range(14_000)) + b"\na\n",
    "many open quotation marks": b"email,first_name\n" + b'a@example.com,"x\n' * 9_999,
    "names of many lines": b'"' + b"x\n" * (MANY // 2),
    "a deep object": b'{"a":' + b"[" * MANY,
}


@pytest.mark.parametrize("what", BOMBS)
def test_a_file_that_nobody_saves_costs_little(owner: Person, what: str) -> None:
    began = time.thread_time()

    assert send(owner, BOMBS[what]).status_code in (303, 422)

    assert time.thread_time() - began < 1.5  # of ours, however many others want the processor


TABLES = {
    "Excel's separator": "sep=;\r\nemail;first_name\r\nann@example.com;Änn\r\n",
    "UTF-16": "email\tfirst_name\nann@example.com\tÄnn\n".encode("utf-16"),
    "UTF-16 without a mark": "email\tfirst_name\nann@example.com\tÄnn\n".encode("utf-16-le"),
    "Windows-1252": "email;first_name\nann@example.com;Änn".encode("cp1252"),
    "separators in names": '"email";"first_name";"a, b, c"\nann@example.com;Änn;\n',
}


@pytest.mark.parametrize("what", TABLES)
def test_a_table_is_read_as_programs_save_it(owner: Person, what: str) -> None:
    columns = suggestions(send(owner, TABLES[what], look="columns").text)
    assert list(columns)[:2] == ["email", "first_name"]

    send(owner, TABLES[what], header=list(columns), column=list(columns.values()))
    apply(owner.workspace_id)

    assert [(contact["email"], contact["first_name"]) for contact in contacts()] == [("ann@example.com", "Änn")]


def test_names_of_columns_may_have_line_breaks(owner: Person) -> None:
    file = '"Größe\r\n(cm)",E-Mail,"Phone\n(with country code)"\n170,ann@example.com,+43 664 1234567\n'.encode("cp1252")
    columns = suggestions(send(owner, file, look="columns").text)
    assert list(columns) == ["Größe (cm)", "E-Mail", "Phone (with country code)"]

    send(owner, file, header=list(columns), column=["custom_field", "email", "phone"])
    apply(owner.workspace_id)

    [ann] = contacts()
    assert (ann["custom_fields"], ann["phone"]) == ({"Größe (cm)": "170"}, "+436641234567")


def test_lines_of_json_may_be_in_another_encoding(owner: Person) -> None:
    lines = '{"email": "ann@example.com", "first_name": "Änn"}\r\n{"email": "bo@example.com"}\r\n'

    imported(owner, lines.encode("utf-16"), "contacts.jsonl")

    assert [(contact["email"], contact["first_name"]) for contact in contacts()] == [
        ("ann@example.com", "Änn"),
        ("bo@example.com", None),
    ]


UNCLOSED = [
    ('ann@example.com,"Ann\nbo@example.com,Bo\ncy@example.com,"Cy"\n', [2], ["bo@example.com", "cy@example.com"]),
    ('ann@example.com,"Ann\nX"\nbo@example.com,"Bo\ncy@example.com,Cy\n', [4], ["ann@example.com", "cy@example.com"]),
    ('ann@example.com,"Ann\n"bo@example.com","Bo"\n', [2], ["bo@example.com"]),
    ('ann@example.com,Ann\nbo@example.com,"Bo', [3], ["ann@example.com"]),
    ('ann@example.com,"Ann\n' + "bo@example.com,\n" * 9_990, [2], ["bo@example.com"]),
]


@pytest.mark.parametrize(("rows", "bad", "good"), UNCLOSED)
def test_a_quotation_mark_that_is_not_closed_is_named_at_its_line(
    owner: Person, rows: str, bad: list[int], good: list[str]
) -> None:
    path = send(owner, "email,first_name\n" + rows).headers["Location"]
    apply(owner.workspace_id)

    faults = owner.get(f"{path}?format=json").json
    assert [fault["line"] for fault in faults] == bad
    assert "quotation mark is not closed" in faults[0]["detail"]
    assert [contact["email"] for contact in contacts()] == good


def test_a_row_of_several_lines_is_named_by_its_first(owner: Person) -> None:
    path = imported(owner, 'first_name,email\n"a\nb",ann@example.com\n"c\nd",nobody\n')

    assert [fault["line"] for fault in owner.get(f"{path}?format=json").json] == [4]


def test_a_time_zone_may_be_in_small_letters(owner: Person) -> None:
    imported(owner, "email,timezone\nann@example.com,europe/zurich\n")

    assert contacts()[0]["timezone"] == "Europe/Zurich"


def test_a_form_without_a_file_says_so(owner: Person) -> None:
    answer = owner.post(IMPORT, {}, content_type="multipart/form-data")

    assert answer.status_code == 422
    assert "Choose a file." in answer.text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("a@example.com,b", "2 cells, the first one only 1"),
        ('"' + "x" * 140_000 + '"', "cannot be read: field larger"),
        ("a\0b", "cannot be stored"),
    ],
)
def test_a_bad_row_does_not_hold_up_the_others(owner: Person, line: str, sentence: str) -> None:
    path = imported(owner, f"email\n{line}\neve@example.com\n")

    assert [contact["email"] for contact in contacts()] == ["eve@example.com"]
    [fault] = owner.get(f"{path}?format=json").json
    assert sentence in fault["detail"]


def test_a_second_click_imports_once_and_another_file_is_not_taken_for_the_first(owner: Person) -> None:
    once = str(uuid.uuid4())

    answers = [send(owner, CSV, once=once) for _ in range(2)]

    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    assert one("SELECT count(*) FROM imports") == 1
    other = send(owner, "email\neve@example.com\n", once=once)
    assert other.status_code == 409
    assert "You have sent this form before" in other.text


def test_the_page_refreshes_until_the_import_has_ended(owner: Person) -> None:
    path = send(owner, CSV).headers["Location"]
    assert 'data-refresh="2"' in owner.page(path)

    apply(owner.workspace_id)

    assert "data-refresh" not in owner.page(path)
    assert path.rpartition("/")[2] in owner.page(IMPORT)


def test_many_bad_lines_are_listed_page_by_page(owner: Person) -> None:
    path = imported(owner, "email\n" + "nobody\n" * 120)

    first = owner.page(path)
    # One more stands in the summary.
    assert first.count("This is not an e-mail address") == 50 + 1
    assert owner.page(f"{path}?after=102").count("This is not an e-mail address") == 19 + 1
    assert owner.page(f"{path}?after=x").count("This is not an e-mail address") == 50 + 1
    assert len(owner.get(f"{path}?format=json").json) == 120


BAD_CELLS = (
    "email,phone,timezone,tags,custom_fields.plan\n"
    "ann@example.com,0664 1234567,Mars,vip,gold\n"
    "bo@example.com,0664 7654321,,,\n"
    f"cy@example.com,,,ok;{'x' * 101},{'y' * 5000}\n"
    "nobody,+436641234568,,,\n"
    "nobody,12,,,\n"
)


def test_a_bad_cell_is_left_out_and_said_and_the_contact_kept(owner: Person) -> None:
    path = imported(owner, BAD_CELLS)

    kept = [(contact["email"], contact["phone"], contact["tags"], contact["custom_fields"]) for contact in contacts()]
    assert kept == [
        ("ann@example.com", None, ["vip"], {"plan": "gold"}),
        ("bo@example.com", None, [], {}),
        ("cy@example.com", None, ["ok"], {}),
        (None, "+436641234568", [], {}),
    ]
    faults = [(fault["line"], fault["field"]) for fault in owner.get(f"{path}?format=json").json]
    assert sorted(faults) == [
        *((2, "phone"), (2, "timezone"), (3, "phone"), (4, "custom_fields/plan"), (4, "tags/1"), (5, "email")),
        *((6, "email"), (6, "phone")),
    ]


def test_lines_with_the_same_fault_are_counted_together(owner: Person) -> None:
    text = owner.page(imported(owner, BAD_CELLS))

    summary = re.findall(r'<tr><td class="number">(\d+)</td>.*?<bdi>([^<]*)</bdi>.*?<td>([^<]*)</td>', text)
    assert summary[0] == ("2", "phone", "imported without it")
    assert ("1", "phone", "not imported") in summary
    assert "Bad lines</dt><dd>1<" in text


def test_lines_imported_in_part_are_no_errors_of_the_api(owner: Person, api: Api) -> None:
    import_id = imported(owner, BAD_CELLS).rpartition("/")[2]

    assert [error["line"] for error in api.get(f"imports/{import_id}/errors").json["data"]] == [6]


def test_a_line_that_fails_after_cells_were_left_out_has_one_error(owner: Person, api: Api) -> None:
    for taken in ({"email": "ann@example.com"}, {"phone": "+436641234567"}):
        api.done(api.post("contacts", taken))

    path = imported(owner, "email,phone,timezone\nann@example.com,+436641234567,Mars\n")

    assert [fault["field"] for fault in owner.get(f"{path}?format=json").json] == [""]
    assert "Bad lines</dt><dd>1<" in owner.page(path)


def test_phones_without_a_code_are_of_the_country_of_the_import(owner: Person) -> None:
    path = send(owner, BAD_CELLS, country="AT").headers["Location"]
    apply(owner.workspace_id)

    phones = [contact["phone"] for contact in contacts()]
    assert phones == ["+436641234567", "+436647654321", None, "+436641234568"]
    assert (2, "phone") not in [(fault["line"], fault["field"]) for fault in owner.get(f"{path}?format=json").json]


def test_the_country_is_suggested_from_the_time_zone_of_the_workspace(owner: Person, api: Api) -> None:
    assert '<option value="" selected>' in owner.page(IMPORT)
    rows("UPDATE workspaces SET timezone = 'Europe/Vienna' WHERE id = %s RETURNING id", (api.workspace_id,))

    assert '<option value="AT" selected>Austria</option>' in owner.page(IMPORT)
    assert '<option value="DE" selected>Germany</option>' in send(owner, BAD_CELLS, look="columns", country="DE").text


def test_a_country_that_there_is_not_is_refused(owner: Person) -> None:
    answer = send(owner, BAD_CELLS, country="XX")

    assert answer.status_code == 422
    assert "There is no such country." in answer.text


def test_the_lines_with_faults_are_a_file_to_correct_and_import_again(owner: Person) -> None:
    file = 'sep=;\nemail;"first\nname";phone\nann@example.com;"Ä\nnn";12\nbo@example.com;Bo;\nnobody;;'.encode("cp1252")
    columns = {"header": ["email", "first name", "phone"], "column": ["email", "first_name", "phone"]}
    path = send(owner, file, **columns).headers["Location"]
    apply(owner.workspace_id)

    answer = owner.post(
        f"{path}/lines", {"file": (io.BytesIO(file), "contacts.csv")}, content_type="multipart/form-data"
    )

    assert answer.headers["Content-Disposition"].endswith('-lines.csv"')
    assert answer.data.decode("utf-8-sig") == (
        'sep=;\nemail;"first\nname";phone\nann@example.com;"Ä\nnn";12\nnobody;;\n'
    )
    mended = answer.data.replace(b";12\n", b";+436641234567\n").replace(b"nobody", b"cy@example.com")
    again = send(owner, mended, **columns).headers["Location"]
    apply(owner.workspace_id)
    assert "Every line was imported." in owner.page(again)
    assert [(contact["email"], contact["phone"]) for contact in contacts()] == [
        *(("ann@example.com", "+436641234567"), ("bo@example.com", None), ("cy@example.com", None)),
    ]


def test_the_lines_of_json_with_faults_are_a_file(owner: Person) -> None:
    file = b'{"email": "nobody"}\n{"email": "ann@example.com"}\n{"\xff\n'
    path = imported(owner, file)

    answer = owner.post(f"{path}/lines", {"file": (io.BytesIO(file), "x.jsonl")}, content_type="multipart/form-data")

    assert answer.data.decode() == '{"email": "nobody"}\n{"ÿ\n'
    refused = owner.post(f"{path}/lines", {}, content_type="multipart/form-data")
    assert (refused.status_code, "Choose a file." in refused.text) == (422, True)


def test_what_a_bad_line_says_is_escaped(owner: Person) -> None:
    path = imported(owner, '{"<script>alert(1)</script>": 1, "email": "a@example.com"}', "x.jsonl")

    assert "<script>alert" not in owner.get(path).text


def test_agents_and_strangers_import_nothing(agent: Person, stranger: Person, owner: Person) -> None:
    path = imported(owner, CSV)

    for who, status in ((agent, 403), (stranger, 404)):
        assert who.get(IMPORT).status_code == status
        assert send(who, CSV).status_code == status
        assert who.get(path).status_code == status


def test_an_import_of_another_workspace_is_not_there(owner: Person, others: Api) -> None:
    body = b'{"email": "a@example.com"}'
    made = others.post("contacts/import", data=body, content_type="application/x-ndjson").json["data"]

    assert owner.get(f"contacts/imports/{made['resource']['id']}").status_code == 404
    assert owner.get("contacts/imports/imp_x").status_code == 404


def test_staff_import_in_a_visit_only(support: Person) -> None:
    assert send(support, CSV).status_code == 403
    support.visit()
    assert send(support, CSV).status_code == 303


SHOP = (
    "E-Mail;Name;Handy;Group;Shoe size;Notes\nada@example.com;Ada King Lovelace;+4930123456;vip;41;\neve;Eve;;;;<b>x\n"
)
SHOP_HEADERS = ["E-Mail", "Name", "Handy", "Group", "Shoe size", "Notes"]


def test_the_columns_of_a_file_are_shown_with_first_values_and_guesses(owner: Person) -> None:
    answer = send(owner, SHOP, look="columns")

    assert answer.status_code == 200
    expected = dict(zip(SHOP_HEADERS, ["email", "name", "phone", "", "", ""], strict=True))
    assert suggestions(answer.text) == expected
    assert "ada@example.com" in answer.text
    assert "<b>x" not in answer.text
    assert one("SELECT count(*) FROM jobs WHERE kind = 'contacts.import'") == 0


def test_columns_are_imported_as_chosen(owner: Person) -> None:
    chosen = {"header": SHOP_HEADERS, "column": ["email", "name", "phone", "tags", "custom_field", ""]}

    answer = send(owner, SHOP, **chosen)
    apply(owner.workspace_id)

    [ada] = contacts()
    assert (ada["first_name"], ada["last_name"], ada["phone"]) == ("Ada", "King Lovelace", "+4930123456")
    assert (ada["tags"], ada["custom_fields"]) == (["vip"], {"Shoe size": "41"})
    refused = owner.page(answer.headers["Location"])
    assert re.search(r'class="number">3</td><td[^>]*><bdi>email</bdi>', refused)


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"column": ["email", "email", "", "", "", ""]}, "Two columns are imported as email"),
        ({"column": ["", "", "", "", "", ""]}, "at least one column"),
        ({"column": ["email", "name", "first_name", "", "", ""]}, "and not both"),
        ({"column": ["email", "password", "", "", "", ""]}, "no such choice"),
        ({"column": ["email"]}, "not the columns of the file"),
        ({"header": ["other"], "column": ["email"]}, "not the columns of the file"),
    ],
)
def test_choices_that_make_no_sense_are_told_and_kept(owner: Person, chosen: dict[str, Any], said: str) -> None:
    answer = send(owner, SHOP, **{"header": SHOP_HEADERS} | chosen)

    assert answer.status_code == 422
    assert said in answer.text
    assert "What the columns are" in answer.text
    assert contacts() == []


def all_but_when() -> list[dict[str, Any]]:
    names = "id external_id email phone first_name last_name locale timezone tags custom_fields opted_out"
    return [{name: contact[name] for name in names.split()} for contact in contacts()]


SHOPPERS: list[dict[str, Any]] = [
    {"external_id": "shop-1", "email": "ann@example.com", "first_name": "Ann", "last_name": "-Lee", "locale": "de-AT"},
    {"phone": "+436641234568", "first_name": "=Bo", "last_name": "'t Hooft", "timezone": "Europe/Vienna"},
    {"external_id": "'08010", "tags": ["a", "b;c", 'd"e', "=1", "f,g"], "opted_out": True},
    {"external_id": "con_1", "custom_fields": {"plan": "gold", "n": 1.5, "vip": True, "-x": "a;=b\n=c"}},
]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_an_exported_list_is_imported_as_it_was(owner: Person, api: Api, kind: str) -> None:
    for shopper in SHOPPERS:
        api.done(api.post("contacts", shopper))
    before, file = all_but_when(), owner.get(f"contacts?format={kind}").data
    suggested = suggestions(send(owner, file, look="columns").text)

    answer = send(owner, file, header=list(suggested), column=list(suggested.values()))
    apply(owner.workspace_id)

    assert all_but_when() == before
    assert owner.page(answer.headers["Location"]).count("Every line was imported.") == 1


def test_an_id_finds_the_contact_whose_identifiers_have_changed(owner: Person, api: Api) -> None:
    ann = api.done(api.post("contacts", {"email": "ann@example.com"}))["resource"]["id"]
    file = f"id;email\n{ann};lee@example.com\ncon_01m8h11p77etdbvajaqg89h73q;bo@example.com\n"

    for _ in range(2):
        send(owner, file, header=["id", "email"], column=["id", "email"])
        apply(owner.workspace_id)

    assert [contact["email"] for contact in contacts()] == ["lee@example.com", "bo@example.com"]
    assert contacts()[0]["id"] == ann


def test_an_id_of_nobody_needs_an_identifier(owner: Person) -> None:
    file = "id;first_name\ncon_01m8h11p77etdbvajaqg89h73q;Bo\n17;Cy\n"

    path = send(owner, file, header=["id", "first_name"], column=["id", "first_name"]).headers["Location"]
    apply(owner.workspace_id)

    faults = [(fault["line"], fault["field"], fault["detail"][:16]) for fault in owner.get(f"{path}?format=json").json]
    assert faults == [(2, "id", "There is no such"), (3, "id", "This is not the ")]


def test_an_id_of_another_workspace_is_nobody(owner: Person, others: Api) -> None:
    theirs = others.done(others.post("contacts", {"email": "ann@example.com"}))["resource"]["id"]

    send(owner, f"id;email\n{theirs};lee@example.com\n", header=["id", "email"], column=["id", "email"])
    apply(owner.workspace_id)

    assert [contact["email"] for contact in contacts()] == ["ann@example.com", "lee@example.com"]


def suggestions(page: str) -> dict[str, str]:
    """The columns that the page shows, with what it suggests for them."""
    return dict(re.findall(r'name="header" value="([^"]*)".*?<option value="(\w*)" selected>', page, re.DOTALL))


def test_unknown_names_lead_to_the_choice_without_a_script(owner: Person) -> None:
    answer = send(owner, SHOP)

    assert answer.status_code == 422
    assert "What the columns are" in answer.text
    assert "Choose the file once more" in answer.text


def test_a_workspace_has_few_files_read_at_a_time(api: Api, owner: Person) -> None:
    with ExitStack() as reading:
        for _ in range(bounds.IMPORTS_PER_WORKSPACE.most):
            reading.enter_context(bounds.reading_import(api.workspace_id))
        refused = send(owner, CSV)

    assert refused.status_code == 429
    assert send(owner, CSV).status_code == 303
