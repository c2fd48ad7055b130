"""Invoices as pages to print."""

from __future__ import annotations

import json
import re

from app.database import rows
from app.lib import ids
from tests.cast import Api
from tests.pages import Person

BILLING = "settings/billing"


def invoice(workspace_id: str, number: int = 42, description: str = "Growth plan") -> str:
    """Stores an invoice and returns its identifier."""
    invoice_id = ids.new("inv")
    line = {"description": description, "meter": None, "used": None, "included": None, "quantity": 1}
    lines = [line | {"unit_price": "49.00", "amount": "49.00"}]
    lines.append(
        {
            **line,
            "description": "Deliveries beyond those included",
            "meter": "deliveries",
            "used": 600_000,
            "included": 500_000,
            "quantity": 100_000,
            "unit_price": None,
            "amount": "5.00",
        }
    )
    rows(
        """
        INSERT INTO invoices (id, workspace_id, number, plan, currency, period_start, period_end, lines, total)
        VALUES (%s, %s, %s, 'growth', 'EUR', '2026-10-01Z', '2026-11-01Z', %s, 54.00)
        """,
        (invoice_id, workspace_id, number, json.dumps(lines)),
    )
    return invoice_id


def test_invoices_are_listed_and_shown_to_be_printed(owner: Person, api: Api) -> None:
    invoice_id = invoice(api.workspace_id)

    assert f'/invoices/{invoice_id}">BHP-000042</a>' in owner.page(BILLING)
    text = owner.page(f"{BILLING}/invoices/{invoice_id}")

    assert "Invoice BHP-000042" in text
    assert re.search(r'aria-current="page"><svg.*?</svg>Billing<', text, re.DOTALL)
    assert "October 2026" in text
    assert "600,000" in text
    assert "54.00 EUR" in text
    assert "Growth" in text


def test_an_invoice_of_another_workspace_is_not_there(owner: Person, others: Api) -> None:
    invoice_id = invoice(others.workspace_id)

    assert owner.get(f"{BILLING}/invoices/{invoice_id}").status_code == 404
    assert owner.get(f"{BILLING}/invoices/inv_x").status_code == 404
    assert invoice_id not in owner.page(BILLING)


def test_agents_and_strangers_see_no_bills_but_staff_do(
    agent: Person, stranger: Person, support: Person, api: Api
) -> None:
    invoice_id = invoice(api.workspace_id)

    for path in (BILLING, f"{BILLING}/invoices/{invoice_id}"):
        assert [who.get(path).status_code for who in (agent, stranger, support)] == [403, 404, 200]


def test_what_a_line_says_is_escaped(owner: Person, api: Api) -> None:
    invoice_id = invoice(api.workspace_id, description="<script>alert(1)</script>")

    assert "<script>alert" not in owner.get(f"{BILLING}/invoices/{invoice_id}").text
