"""Billing on pages: the plan and its usage, and invoices to print."""

from __future__ import annotations

import json
import re

from app.database import rows
from app.domain.billing import plans
from app.lib import ids
from tests.app.web.counting import MOST_STATEMENTS, counted_statements
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


def test_the_plan_and_its_usage_against_its_limits_are_shown(owner: Person, api: Api) -> None:
    plans.change(api.workspace_id, "growth")
    api.contact(email="ada@example.com")

    text = owner.page(BILLING)

    assert "<strong>Free</strong>, 0.00 EUR a month" in text
    assert "Growth, 49.00 EUR a month" in text
    assert "Active contacts" in text
    assert 'max="100" value="0" aria-label="Deliveries: 0 % of what the plan includes"' in text
    assert "No invoices yet" in text


def test_usage_beyond_the_limit_is_marked(owner: Person, api: Api) -> None:
    rows(
        "INSERT INTO usage_days (workspace_id, day, meter, amount) VALUES (%s, now()::date, 'runs', 850),"
        " (%s, now()::date, 'deliveries', 25000)",
        (api.workspace_id, api.workspace_id),
    )

    text = owner.page(BILLING)

    assert '<span class="state warn">85 %</span>' in text
    assert '<span class="state bad">250 %</span>' in text
    assert 'value="100" aria-label="Deliveries: 250 %' in text


def test_the_page_takes_few_statements(owner: Person) -> None:
    owner.page(BILLING)
    with counted_statements() as statements:
        owner.page(BILLING)

    assert len(statements) <= MOST_STATEMENTS, statements


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
