"""No list reads a table from end to end, whatever it is filtered by. `test_query_plans` has what lists cost."""

from __future__ import annotations

import pytest
from flask import Flask

from tests import surface
from tests.cast import Api

# Filters for which no valid value can be made from the type of the field.
VALUES = {"phone": "+4930123456", "status_code": "503"}


def test_every_list_finds_its_rows_by_index_with_each_of_its_filters(
    app: Flask, api: Api, scanned: list[tuple[str, str]], subtests: pytest.Subtests
) -> None:
    found = surface.operations(app)
    known = surface.furnish(api, "ada@example.com", {noun for operation in found for noun in operation.nouns})

    for operation in surface.lists(found):
        path = operation.path(api.workspace_id, known)
        for name, field in operation.query.load_fields.items():
            if name == "cursor":  # only the server can make one
                continue
            with subtests.test(f"{operation}?{name}"):
                scanned.clear()
                value = VALUES.get(name) or surface.sample_of(name, field, known)
                answer = api.get(path, query_string={name: value})
                assert answer.status_code == 200, answer.text
                assert scanned == []
