from __future__ import annotations

import pytest

from app.domain.contacts import sales
from app.errors import Conflict, Invalid, NotFound
from app.models.sales import Sale
from tests.cast import Api


def test_a_sale_to_a_contact_that_is_there_may_be_recorded(api: Api) -> None:
    contact = api.contact(email="ada@example.com")

    assert sales.check(api.workspace_id, {"contact_id": contact["id"], "reference": "order-1"}).id == contact["id"]


@pytest.mark.parametrize("contact_id", ["con_01kaj5bd40e6rr3f5y2kq0w9xz", "x", ""])
def test_a_sale_to_nobody_is_invalid_at_contact_id(api: Api, contact_id: str) -> None:
    with pytest.raises(Invalid) as refused:
        sales.check(api.workspace_id, {"contact_id": contact_id})

    assert [fault.pointer for fault in refused.value.faults] == ["/contact_id"]


def test_a_sale_to_a_contact_of_another_workspace_is_one_to_nobody(api: Api, others: Api) -> None:
    theirs = others.contact(email="eve@example.com")

    with pytest.raises(Invalid):
        sales.check(api.workspace_id, {"contact_id": theirs["id"]})


def test_a_reference_that_is_taken_is_a_conflict_that_names_the_sale(api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    holder = api.sale(contact["id"], reference="order-1")

    with pytest.raises(Conflict) as refused:
        sales.check(api.workspace_id, {"contact_id": contact["id"], "reference": "order-1"})

    assert refused.value.facts == {"conflicting_sale_id": holder["id"]}


def test_only_sales_of_the_workspace_are_found(api: Api, others: Api) -> None:
    sale = api.sale(api.contact(email="ada@example.com")["id"])

    assert Sale.find(api.workspace_id, sale["id"]).id == sale["id"]
    with pytest.raises(NotFound):
        Sale.find(others.workspace_id, sale["id"])
