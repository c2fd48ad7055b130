"""Resending a delivery on its page."""

from __future__ import annotations

from app import database
from app.outbound import answered
from tests.cast import Api, all_of, one
from tests.logs import attempt, delivery, set_state
from tests.pages import Person

LIST = "dashboard/deliveries"


def test_resending_a_failed_delivery_sends_it_under_its_own_identifier(api: Api, agent: Person) -> None:
    _, delivery_id = delivery(api)
    set_state(delivery_id, status="failed", due_at=None, attempts=6, last_error="Broken.", last_error_code="status")

    answer = agent.post(f"{LIST}/{delivery_id}/resend")

    assert answer.status_code == 303
    assert answer.location.endswith(delivery_id)
    assert "It is sent again." in agent.page(answer.location)
    assert one("SELECT status FROM deliveries") == "pending"
    assert all_of("SELECT action FROM audit_entries WHERE target_id = %s", delivery_id) == ["deliveries.resend"]


def test_resending_a_delivered_one_goes_to_the_new_delivery(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    attempt(endpoint_id, answered(204, b"", 5))

    answer = owner.post(f"{LIST}/{delivery_id}/resend")

    new_id = one("SELECT id FROM deliveries WHERE resent_from = %s", delivery_id)
    assert answer.location.endswith(new_id)
    assert "as this new delivery" in owner.page(answer.location)


def test_a_second_click_sends_nothing_more(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    attempt(endpoint_id, answered(204, b"", 5))
    once = {"once": "7f1b8f5e-3c0d-4a53-9d0e-2f6a1c9b8d47"}

    locations = {owner.post(f"{LIST}/{delivery_id}/resend", once).location for _ in range(2)}

    assert len(locations) == 1
    assert one("SELECT count(*) FROM deliveries") == 2


def test_a_conflict_is_said_on_the_page(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    set_state(delivery_id, status="held", due_at=None)
    database.rows("UPDATE endpoints SET state = 'stopped', stop_reason = 'It failed.'")

    answer = owner.post(f"{LIST}/{delivery_id}/resend")

    shown = owner.page(answer.location)
    assert "The endpoint of this delivery is stopped. Enable it first." in shown
    assert f"/dashboard/endpoints/{endpoint_id}" in shown


def test_support_staff_resend_only_during_a_visit(api: Api, support: Person) -> None:
    _, delivery_id = delivery(api)
    set_state(delivery_id, status="failed", due_at=None)

    assert f"{delivery_id}/resend" not in support.page(f"{LIST}/{delivery_id}")
    assert support.post(f"{LIST}/{delivery_id}/resend").status_code == 403
    support.visit()
    assert support.post(f"{LIST}/{delivery_id}/resend").status_code == 303
    assert one("SELECT actor_type FROM audit_entries WHERE action = 'deliveries.resend'") == "support"
