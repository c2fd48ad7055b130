from __future__ import annotations

from app.domain.billing import invoices
from tests.billing import FEBRUARY, close_february, skip_to
from tests.cast import Api, one


def test_an_invoice_is_shown_with_its_lines(api: Api) -> None:
    close_february(api.workspace_id)

    [shown] = api.get("invoices").json["data"]

    assert shown == {
        "id": one("SELECT id FROM invoices"),
        "number": "BHP-000001",
        "status": "open",
        "plan": "growth",
        "currency": "EUR",
        "period_start": "2028-02-01T00:00:00.000Z",
        "period_end": "2028-03-01T00:00:00.000Z",
        "lines": shown["lines"],
        "total": "49.00",
        "created_at": shown["created_at"],
    }
    assert shown["lines"][0] == {
        "description": "Growth plan",
        "meter": None,
        "used": None,
        "included": None,
        "quantity": 1,
        "unit_price": "49.00",
        "amount": "49.00",
    }
    assert [line["meter"] for line in shown["lines"][1:]] == ["active_contacts", "messages", "runs", "deliveries"]
    assert shown["lines"][4] == {
        "description": "Deliveries beyond those included",
        "meter": "deliveries",
        "used": 0,
        "included": 500_000,
        "quantity": 0,
        "unit_price": "0.00005",
        "amount": "0.00",
    }
    assert api.get(f"invoices/{shown['id']}").json == {"data": shown}


def test_invoices_are_listed_newest_first_and_in_pages(api: Api) -> None:
    close_february(api.workspace_id)
    skip_to(FEBRUARY.next.next.next.starts_at)
    for _ in range(3):
        invoices.close()

    first = api.get("invoices?limit=2").json
    second = api.get(f"invoices?limit=2&cursor={first['meta']['nextCursor']}").json

    months = [invoice["period_start"][:7] for page in (first, second) for invoice in page["data"]]
    assert months == ["2028-04", "2028-03", "2028-02"]
    assert (first["meta"]["hasMore"], second["meta"]["hasMore"]) == (True, False)
