"""Lists of pages: their places, counts and files."""

from __future__ import annotations

import csv
import io

import pytest
from flask import Flask

from app.web import lists
from tests.pages import Person


@pytest.fixture
def rows() -> list[dict[str, object]]:
    return [
        {"name": "=HYPERLINK()", "number": 1, "none": None},
        {"name": 'quote "and", comma', "number": 2, "none": None},
    ]


def test_a_list_as_csv_runs_no_formula(app: Flask, rows: list[dict[str, object]]) -> None:
    with app.extensions["pages"].test_request_context("/?format=csv"):
        response = lists.file_of(lambda: rows, "things")

    read = list(csv.DictReader(io.StringIO(response.get_data(as_text=True))))
    assert [each["name"] for each in read] == ["'=HYPERLINK()", 'quote "and", comma']
    assert read[0]["none"] == ""
    assert response.headers["Content-Disposition"] == 'attachment; filename="things.csv"'


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        *[(f"{sign}1+1", f"'{sign}1+1") for sign in "=+-@\uff1d\uff0b\uff0d\uff20"],
        *[("\t=1", "'\t'=1"), ("\r=1", "'\r'=1"), ("\n=1", "'\n'=1"), ("\tx", "'\tx"), ("  =1", "'  =1")],
        *[("\ufeff=1", "'\ufeff=1"), ('Ada;"=1"', "Ada;'\"=1\"")],
        *[("Ada;=1", "Ada;'=1"), ("Ada; @x", "Ada;' @x"), ("a\n=1\n=2", "a\n'=1\n'=2"), ('"";=1', "\"\";'=1")],
        *[("Ada = Eve", "Ada = Eve"), ("a;b", "a;b"), ("it's", "it's"), ("", ""), (-5, "'-5"), (None, "")],
    ],
)  # fmt: skip
def test_no_cell_of_a_file_is_a_formula(app: Flask, cell: object, written: str) -> None:
    with app.extensions["pages"].test_request_context("/?format=csv"):
        response = lists.file_of(lambda: [{"id": "x", "name": cell}], "things")

    [read] = csv.DictReader(io.StringIO(response.get_data(as_text=True), newline=""))
    assert read["name"] == written


def test_a_list_as_json_is_what_the_api_shows(app: Flask, rows: list[dict[str, object]]) -> None:
    with app.extensions["pages"].test_request_context("/?format=json"):
        assert lists.file_of(lambda: rows, "things").json == rows


def test_a_list_in_batches_is_the_same_file(app: Flask, rows: list[dict[str, object]]) -> None:
    with app.extensions["pages"].test_request_context("/?format=csv"):
        streamed = lists.streamed(iter([rows[:1], rows[1:]]), "things")
        whole = lists.file_of(lambda: rows, "things")
    with app.extensions["pages"].test_request_context("/?format=json"):
        as_json = lists.streamed(iter([rows[:1], rows[1:]]), "things")
        nothing = lists.streamed(iter([]), "things")

    assert streamed.get_data() == whole.get_data()
    assert streamed.headers["Content-Disposition"] == 'attachment; filename="things.csv"'
    assert (as_json.json, nothing.json) == (rows, [])


def test_empty_and_unprintable_filters_do_not_count(app: Flask) -> None:
    with app.extensions["pages"].test_request_context("/?kind=&status=failed&q=%00&long=" + "x" * 201):
        assert lists.filters("kind", "status", "q", "long") == {"status": "failed"}


def test_a_page_has_rows_and_the_address_of_the_next(app: Flask, owner: Person) -> None:
    with app.extensions["pages"].test_request_context("/workspaces?after=90"):
        app.extensions["pages"].preprocess_request()
        page = lists.sliced(lambda after, limit: list(range(int(after or 0), int(after or 0) - limit, -1)), key=str)

    assert len(page.rows) == lists.ROWS
    assert page.next_address == "/workspaces?after=41"
    assert page.first_address == "/workspaces"


def test_an_address_does_not_choose_where_the_links_of_its_page_lead(app: Flask, owner: Person) -> None:
    asked = "/workspaces?q=1&_scheme=javascript&_external=1&_anchor=x&endpoint=sign_ins.show"
    with app.extensions["pages"].test_request_context(asked):
        app.extensions["pages"].preprocess_request()

        assert lists.address() == "/workspaces?q=1"
