"""What is left of a contact that was deleted, in any column of any table: its identifier, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.database import rows
from app.domain import contacts, deliveries, lanes
from app.domain.deliveries import Dispatch, Outcome
from app.lib import clock
from app.outbound import Answer
from tests.cast import KEY, Api, one

PERSON = {
    "external_id": "zq-external",
    "email": "Zq-Mail@example.com",
    "phone": "+4930775533",
    "first_name": "Zq-Given",
    "last_name": "Zq-Family",
    "tags": ["zq-tag"],
    "custom_fields": {"zq-field": "zq-value"},
}
OLD_EMAIL = "zq-old@example.com"
MARKS = {
    "zq-external",
    "zq-mail@example.com",
    "+4930775533",
    "zq-given",
    "zq-family",
    "zq-tag",
    "zq-field",
    "zq-value",
    "zq-old@example.com",
    "zq-echo",
    "zq-echo-too-late",
    "zq-elsewhere",
    "zq-reference",
    "zq-title",
}


def found_in() -> dict[str, set[str]]:
    """Each mark that is stored anywhere, with the columns that have it."""
    columns = rows(
        """
        SELECT relname, attname, atttypid = 'bytea'::regtype FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
            AND attnum > 0 AND NOT attisdropped
        """
    )
    found: dict[str, set[str]] = {}
    for table, column, is_bytes in columns:
        text = f"encode({column}, 'escape')" if is_bytes else f"{column}::text"
        has_it = f"EXISTS (SELECT FROM {table} WHERE strpos(lower({text}), mark) > 0)"
        for (mark,) in rows(f"SELECT mark FROM unnest(%s) AS mark WHERE {has_it}", (list(MARKS),)):
            found.setdefault(mark, set()).add(f"{table}.{column}")
    return found


def claim(endpoint_id: str) -> list[Dispatch]:
    rows("UPDATE deliveries SET due_at = now(), leased_until = now() WHERE due_at IS NOT NULL")
    return deliveries.claim(lanes.FAST, {endpoint_id: 100})


def answer(dispatches: list[Dispatch], given: Answer) -> None:
    deliveries.record([Outcome(dispatch, clock.now(), given) for dispatch in dispatches])


def store_everywhere(api: Api, endpoint_id: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A contact that has left its data wherever a contact can."""
    contact_id = api.contact(**PERSON | {"email": OLD_EMAIL})["id"]
    api.done(api.post("contacts", {name: PERSON[name] for name in ("external_id", "email")}, key=KEY))
    answer(claim(endpoint_id), Answer(200, None, b"thanks, zq-echo", 5))
    lines = [PERSON | {"locale": "en"}, {"external_id": "other", "email": PERSON["email"]}]
    text = "\n".join(map(json.dumps, lines))
    api.done(api.post("contacts/import", data=text, content_type="application/x-ndjson"))
    sentence = "Redirects are not followed (302 to https://shop.example/zq-elsewhere)."
    answer(claim(endpoint_id), Answer(302, sentence, b"", 5))
    with monkeypatch.context() as broken:
        broken.setattr(contacts, "_save", None)
        for path, body in (("contacts", {"email": OLD_EMAIL.upper()}), ("contacts", {"phone": PERSON["phone"]})):
            contacts_upsert = api.post(path, body | {"first_name": "Zq-Given"})
            api.apply()
            assert contacts_upsert.status_code == 202
        api.done(api.post(f"contacts/{contact_id}/tags", {"name": "zq-tag"}))
    api.sale(contact_id, reference="zq-reference")
    api.booking(contact_id, title="zq-title")
    delivery_id = one("SELECT id FROM deliveries WHERE status = 'delivered' LIMIT 1")
    api.done(api.post(f"webhooks/deliveries/{delivery_id}/resend"))
    return str(contact_id)


def test_nothing_of_a_deleted_contact_is_left_in_any_column(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint_id = api.endpoint()
    contact_id = store_everywhere(api, endpoint_id, monkeypatch)
    under_way = claim(endpoint_id)
    assert under_way
    before = found_in()
    assert MARKS - before.keys() == {"zq-echo-too-late"}
    assert {
        "contacts.search",
        "events.body",
        "jobs.payload",
        "sales.reference",
        "bookings.title",
        "attempts.response_body",
        "attempts.error",
    } <= set().union(*before.values())

    deleting = api.delete(f"contacts/{contact_id}")
    api.patch(f"contacts/{contact_id}", {"last_name": "Zq-Family"})
    api.apply()
    answer(under_way, Answer(500, "The server answered 500 (Internal Server Error).", b"zq-echo-too-late", 5))

    assert api.job(deleting)["status"] == "succeeded"
    assert found_in() == {}


def test_what_was_under_way_goes_out_again_without_the_data(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint_id = api.endpoint()
    contact_id = api.contact(**PERSON)["id"]
    [late, *_] = claim(endpoint_id)

    api.done(api.delete(f"contacts/{contact_id}"))
    answer([late], Answer(204, None, b"", 5))

    again = {dispatch.claimed.id: dispatch for dispatch in claim(endpoint_id)}
    assert one("SELECT count(*) FROM attempts") == 0
    body: dict[str, Any] = json.loads(again[late.claimed.id].body)
    assert body["data"] == {"contact": {"id": contact_id}}


def test_held_deliveries_stay_held(api: Api) -> None:
    endpoint_id = api.endpoint()
    contact_id = api.contact(**PERSON)["id"]
    claim(endpoint_id)
    rows("UPDATE deliveries SET status = 'held', due_at = NULL")

    api.done(api.delete(f"contacts/{contact_id}"))

    held = "SELECT count(*) FROM deliveries WHERE status = 'held' AND due_at IS NULL"
    assert one(held) == one("SELECT count(*) FROM deliveries WHERE kind <> 'contact.deleted'") > 0


def test_a_contact_with_very_many_events_is_erased(api: Api) -> None:
    contact_id = api.contact(**PERSON)["id"]
    rows(
        """
        INSERT INTO events (id, workspace_id, kind, contact_id, trace_id, body, created_at)
        SELECT 'evt_0000000000000000000000' || lpad(number::text, 4, '0'), workspace_id, kind, contact_id, '', body,
            now()
        FROM events CROSS JOIN generate_series(1, 1200) AS number WHERE kind = 'contact.created'
        """
    )

    api.done(api.delete(f"contacts/{contact_id}"))

    assert found_in() == {}
