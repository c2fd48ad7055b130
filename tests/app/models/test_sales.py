"""The queries behind the list of sales, explained with many rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app import database
from app.models.base import page_before
from app.models.sales import Sale
from tests.cast import indexes_used

AT = datetime(2026, 11, 1, tzinfo=UTC)
OURS, CONTACT = "ws_00000000000000000000000001", "con_00000000000000000000000000"


@pytest.fixture(scope="module")
def many_sales(empty_for_module: None) -> None:
    """40,000 sales of 200 workspaces, of ten contacts each, one a minute."""
    database.rows(
        "INSERT INTO workspaces (id, name) SELECT 'ws_' || lpad(number::text, 26, '0'), 'w'"
        " FROM generate_series(1, 200) AS number"
    )
    database.rows(
        "INSERT INTO sales (id, workspace_id, contact_id, amount, currency, reference, occurred_at)"
        " SELECT 'sal_' || lpad(number::text, 26, '0'), 'ws_' || lpad((1 + number %% 200)::text, 26, '0'),"
        " 'con_' || lpad((number %% 2000)::text, 26, '0'), 1, 'EUR', 'order-' || number,"
        " %s + number * interval '1 minute' FROM generate_series(1, 40000) AS number",
        (AT,),
    )
    # Of all rows, not of a sample by chance.
    database.rows("SET default_statistics_target = 200; ANALYZE sales; RESET default_statistics_target")


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "sales_page"),
        ({"contact_id": CONTACT}, "sales_contact"),
        ({"reference": "order-200"}, "sales_reference"),
        ({"occurred_since": AT}, "sales_occurred"),
        ({"occurred_until": AT + timedelta(days=20)}, "sales_occurred"),
        ({"occurred_since": AT, "occurred_until": AT + timedelta(hours=1)}, "sales_occurred"),
        ({"occurred_since": AT, "reference": "order-200"}, "sales_reference"),
        ({"occurred_since": AT, "contact_id": CONTACT}, "sales_contact_occurred"),
        ({"occurred_until": AT + timedelta(days=20), "contact_id": CONTACT}, "sales_contact_occurred"),
    ],
    ids=str,
)
@pytest.mark.parametrize("last_id", [None, "sal_00000000000000000000020000"], ids=["first page", "deep page"])
def test_every_filter_has_its_index(many_sales: None, filters: dict[str, Any], index: str, last_id: str | None) -> None:
    order = Sale.order(filters)
    last = [last_id and str(AT + timedelta(days=10)), last_id][-len(order) :]

    assert indexes_used(page_before(Sale.matching(OURS, filters), Sale, last, 50, order)) == {index}


def test_forgetting_a_contact_reads_no_more_than_its_sales(many_sales: None) -> None:
    query = Sale.update(contact_id=None, reference=None).where(Sale.contact_id == CONTACT)

    [index] = indexes_used(query)

    assert index in ("sales_contact", "sales_contact_occurred")
