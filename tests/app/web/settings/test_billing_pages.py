"""Billing on pages: the plan and its usage."""

from __future__ import annotations

from app.database import rows
from app.domain.billing import plans
from tests.app.web.counting import MOST_STATEMENTS, counted_statements
from tests.cast import Api
from tests.pages import Person

BILLING = "settings/billing"


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


def test_agents_and_strangers_see_no_bills_but_staff_do(agent: Person, stranger: Person, support: Person) -> None:
    assert [who.get(BILLING).status_code for who in (agent, stranger, support)] == [403, 404, 200]
