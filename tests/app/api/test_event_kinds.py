from __future__ import annotations

from typing import Any

from tests.cast import Api, event_bodies


def test_every_kind_is_shown_with_a_whole_body(api: Api) -> None:
    shown = api.get("webhooks/events").json["data"]

    for kind in shown:
        assert sorted(kind) == ["description", "kind", "sample"]
        assert list(kind["sample"]) == ["id", "kind", "created_at", "workspace_id", "data"]
        assert kind["sample"]["kind"] == kind["kind"]
        assert kind["sample"]["workspace_id"] == api.workspace_id


def test_every_kind_is_there_once(api: Api) -> None:
    kinds = [kind["kind"] for kind in api.get("webhooks/events").json["data"]]

    assert {"contact.created", "contact.updated", "contact.deleted", "tag.added", "tag.removed"} <= set(kinds)
    assert {"sale.recorded", "booking.created", "booking.cancelled"} <= set(kinds)
    assert len(kinds) == len(set(kinds))


def shape(value: Any) -> Any:
    """The names in a document, without what they hold; custom fields are the workspace's own."""
    if not isinstance(value, dict):
        return None
    return {name: None if name == "custom_fields" else shape(inner) for name, inner in value.items()}


def test_samples_have_the_shape_of_what_is_delivered(api: Api) -> None:
    contact = api.contact(email="ada@example.com", tags=["vip"])
    api.done(api.patch(f"contacts/{contact['id']}", {"first_name": "Ada", "tags": []}))
    api.done(api.delete(f"contacts/{contact['id']}"))
    api.contact(email="eve@example.com", tags=["vip"])
    api.done(api.patch(f"contacts/{api.get('contacts').json['data'][0]['id']}", {"first_name": "Eve", "tags": []}))
    real = {body["kind"]: shape(body) for body in event_bodies(api.workspace_id)[-4:]}
    real["contact.deleted"] = next(
        shape(body) for body in event_bodies(api.workspace_id) if body["kind"] == "contact.deleted"
    )

    samples = {kind["kind"]: shape(kind["sample"]) for kind in api.get("webhooks/events").json["data"]}

    assert {kind: samples[kind] for kind in real} == real
    assert len(real) == 5


def test_samples_of_sales_and_bookings_have_the_shape_of_what_is_delivered(api: Api) -> None:
    contact = api.contact(email="ada@example.com")
    api.sale(contact["id"])
    api.done(api.post(f"bookings/{api.booking(contact['id'])['id']}/cancel"))
    real = {body["kind"]: shape(body) for body in event_bodies(api.workspace_id)[-3:]}

    samples = {kind["kind"]: kind["sample"] for kind in api.get("webhooks/events").json["data"]}

    assert {kind: shape(samples[kind]) for kind in real} == real
    assert samples["booking.cancelled"]["data"]["booking"]["status"] == "cancelled"
    assert samples["sale.recorded"]["data"]["sale"]["amount"] == "19.90"
