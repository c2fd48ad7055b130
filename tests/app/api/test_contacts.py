from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from app import database
from app.domain.contacts import contacts
from app.lib import clock, ids
from tests.cast import Api, event_bodies, event_kinds, everything_stored, one


def forget_events() -> None:
    database.rows("DELETE FROM events")


def test_a_contact_is_made_with_all_its_fields(api: Api) -> None:
    fields = {
        "external_id": "customer-1",
        "email": "Ada@example.com",
        "phone": "+4930123456",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "locale": "en-GB",
        "timezone": "Europe/London",
        "custom_fields": {"plan": "gold", "orders": 3, "score": 1.5, "paid": True},
        "opted_out": True,
    }

    contact = api.contact(**fields, tags=["vip", "beta", "vip"])

    assert {name: contact[name] for name in fields} == fields
    assert contact["tags"] == ["beta", "vip"]
    assert re.fullmatch(r"con_[0-9a-z]{26}", contact["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", contact["created_at"])
    assert contact["created_at"] == contact["updated_at"]


def test_a_contact_of_one_identifier_has_nothing_else(api: Api) -> None:
    contact = api.contact(phone="+49 (30) 123456")

    assert contact == {
        "id": contact["id"],
        "external_id": None,
        "email": None,
        "phone": "+4930123456",
        "first_name": None,
        "last_name": None,
        "locale": None,
        "timezone": None,
        "tags": [],
        "custom_fields": {},
        "identities": [],
        "suggested_merges": [],
        "opted_out": False,
        "created_at": contact["created_at"],
        "updated_at": contact["updated_at"],
    }


def test_fields_that_are_not_given_stay(api: Api) -> None:
    api.contact(email="ada@example.com", first_name="Ada", opted_out=True)

    changed = api.contact(email="ada@example.com", last_name="Lovelace")

    assert (changed["first_name"], changed["last_name"], changed["opted_out"]) == ("Ada", "Lovelace", True)


def test_a_field_that_is_null_is_emptied(api: Api) -> None:
    api.contact(email="ada@example.com", first_name="Ada", phone="+4930123456")

    changed = api.contact(email="ada@example.com", first_name=None, phone=None)

    assert (changed["first_name"], changed["phone"]) == (None, None)


def test_tags_of_an_upsert_are_added(api: Api) -> None:
    api.contact(email="ada@example.com", tags=["vip"])

    assert api.contact(email="ada@example.com", tags=["beta", " vip "])["tags"] == ["beta", "vip"]


def test_custom_fields_are_merged_and_null_removes_one(api: Api) -> None:
    api.contact(email="ada@example.com", custom_fields={"plan": "gold", "orders": 3})

    changed = api.contact(email="ada@example.com", custom_fields={"orders": None, "city": "London", "none": None})

    assert changed["custom_fields"] == {"plan": "gold", "city": "London"}


def test_a_new_contact_has_no_custom_field_that_is_null(api: Api) -> None:
    assert api.contact(email="ada@example.com", custom_fields={"plan": None})["custom_fields"] == {}


@pytest.mark.parametrize("number", [0, -1, 1.5, 2**53, -(2**53), 1e-300, 0.1])
def test_numbers_of_custom_fields_come_back_as_they_were(api: Api, number: float) -> None:
    assert api.contact(email="ada@example.com", custom_fields={"n": number})["custom_fields"] == {"n": number}


# Phone numbers that are written in two ways

WAYS = [
    ("+5511987654321", "+551187654321"),
    ("+5491123456789", "+541123456789"),
    ("+5215512345678", "+525512345678"),
]


@pytest.mark.parametrize(("one", "other"), [*WAYS, *(pair[::-1] for pair in WAYS)])
def test_a_number_that_is_written_in_another_way_finds_its_contact(api: Api, one: str, other: str) -> None:
    made = api.contact(phone=one, first_name="Ada")

    changed = api.contact(phone=other, external_id="customer-1")

    assert (changed["id"], changed["external_id"], changed["first_name"]) == (made["id"], "customer-1", "Ada")
    assert changed["phone"] == made["phone"]
    for way in (one, other):
        found = api.get(f"contacts?phone={way.replace('+', '%2B')}").json["data"]
        assert [each["id"] for each in found] == [made["id"]]


def test_a_number_that_is_written_in_another_way_is_taken(api: Api) -> None:
    one, other = WAYS[0]
    made = api.contact(phone=one)
    eve = api.contact(email="eve@example.com")

    taken = api.done(api.patch(f"contacts/{eve['id']}", {"phone": other}))
    api.done(api.patch(f"contacts/{made['id']}", {"phone": other}))

    assert taken["problem"]["conflicting_contact_id"] == made["id"]
    assert api.show_contact(made["id"])["phone"] == other


def test_two_contacts_that_had_both_ways_are_each_found_by_their_own(api: Api) -> None:
    one, other = WAYS[0]
    first, second = api.contact(phone=one), api.contact(email="eve@example.com")
    database.rows("UPDATE contacts SET phone = %s WHERE id = %s", (other, second["id"]))

    assert [api.contact(phone=way)["id"] for way in (one, other)] == [first["id"], second["id"]]


# What forms and no-code platforms send for a field that nobody filled in

EMPTY = {
    **{"phone": "", "external_id": "", "first_name": "", "last_name": "", "locale": "", "timezone": ""},
    **{"tags": [""], "custom_fields": {"plan": ""}, "opted_out": ""},
}


def test_empty_fields_count_as_not_given(api: Api) -> None:
    made = api.contact(
        **{"email": "ada@example.com", "phone": "+4930123456", "first_name": "Ada", "locale": "en", "tags": ["vip"]},
        custom_fields={"plan": "gold"},
        opted_out=True,
    )

    assert api.contact(email="ada@example.com", **EMPTY) == made
    api.done(api.patch(f"contacts/{made['id']}", {"email": "", **EMPTY}))
    assert api.show_contact(made["id"]) == made


def test_a_new_contact_has_nothing_of_its_empty_fields(api: Api) -> None:
    made = api.contact(email="ada@example.com", **EMPTY)

    assert {name: made[name] for name in EMPTY} == {
        **dict.fromkeys(("phone", "external_id", "first_name", "last_name", "locale", "timezone")),
        **{"tags": [], "custom_fields": {}, "opted_out": False},
    }


# Letters and their accents


def test_a_letter_is_the_same_however_it_was_typed(api: Api) -> None:
    made = api.contact(
        **{"external_id": "\u200b c-1\u00a0", "email": "\u202azoe@example.com\u202c", "first_name": "Zoe\u0308"},
        tags=["cafe\u0301", "caf\u00e9", "\ufeffvip"],
    )

    assert (made["external_id"], made["email"], made["first_name"]) == ("c-1", "zoe@example.com", "Zo\u00eb")
    assert made["tags"] == ["caf\u00e9", "vip"]
    for query in ("q=zo%C3%AB", "q=zoe%CC%88", "tag=caf%C3%A9", "tag=cafe%CC%81"):
        assert [each["id"] for each in api.get(f"contacts?{query}").json["data"]] == [made["id"]]


# Changing one


def test_a_patch_changes_what_is_given(api: Api) -> None:
    made = api.contact(email="ada@example.com", first_name="Ada", custom_fields={"plan": "gold"})

    job = api.done(api.patch(f"contacts/{made['id']}", {"last_name": "Lovelace", "custom_fields": {"a": 1}}))

    assert job["status"] == "succeeded"
    changed = api.show_contact(made["id"])
    assert changed == made | {
        "last_name": "Lovelace",
        "custom_fields": {"plan": "gold", "a": 1},
        "updated_at": changed["updated_at"],
    }
    assert changed["updated_at"] > made["updated_at"]


def test_tags_of_a_patch_replace(api: Api) -> None:
    made = api.contact(email="ada@example.com", tags=["vip", "beta"])
    forget_events()

    api.done(api.patch(f"contacts/{made['id']}", {"tags": ["beta", "new"]}))

    assert api.show_contact(made["id"])["tags"] == ["beta", "new"]
    assert [(body["kind"], body["data"]["tag"]) for body in event_bodies(api.workspace_id)] == [
        ("tag.added", "new"),
        ("tag.removed", "vip"),
    ]


def test_a_patch_may_empty_the_tags(api: Api) -> None:
    made = api.contact(email="ada@example.com", tags=["vip"])

    api.done(api.patch(f"contacts/{made['id']}", {"tags": []}))

    assert api.show_contact(made["id"])["tags"] == []


def test_a_patch_to_the_own_identifier_in_another_case_is_no_conflict(api: Api) -> None:
    made = api.contact(email="ada@example.com")

    job = api.done(api.patch(f"contacts/{made['id']}", {"email": "Ada@example.com"}))

    assert job["status"] == "succeeded"
    assert api.show_contact(made["id"])["email"] == "Ada@example.com"


def test_a_patch_cannot_take_the_last_identifier(api: Api) -> None:
    made = api.contact(email="ada@example.com", phone="+4930123456")

    taken = api.done(api.patch(f"contacts/{made['id']}", {"phone": None}))
    refused = api.done(api.patch(f"contacts/{made['id']}", {"email": None}))

    assert (taken["status"], refused["status"]) == ("succeeded", "failed")
    assert refused["problem"]["status"] == 409
    assert api.show_contact(made["id"])["email"] == "ada@example.com"


def test_a_patch_of_nothing_changes_nothing(api: Api) -> None:
    made = api.contact(email="ada@example.com")
    forget_events()

    job = api.done(api.patch(f"contacts/{made['id']}", {}))

    assert job["status"] == "succeeded"
    assert api.show_contact(made["id"]) == made
    assert event_kinds(api.workspace_id) == []


def test_a_patch_of_a_contact_that_was_deleted_meanwhile_fails_with_not_found(api: Api) -> None:
    made = api.contact(email="ada@example.com")
    deleting = api.delete(f"contacts/{made['id']}")
    patching = api.patch(f"contacts/{made['id']}", {"first_name": "Ada"})

    api.apply()

    assert api.job(deleting)["status"] == "succeeded"
    assert api.job(patching)["status"] == "failed"
    assert api.job(patching)["problem"]["status"] == 404


# Tags


def test_a_tag_is_added_once(api: Api) -> None:
    made = api.contact(email="ada@example.com")
    forget_events()

    first = api.done(api.post(f"contacts/{made['id']}/tags", {"name": " vip "}))
    second = api.done(api.post(f"contacts/{made['id']}/tags", {"name": "vip"}))

    assert (first["status"], second["status"]) == ("succeeded", "succeeded")
    assert api.show_contact(made["id"])["tags"] == ["vip"]
    assert [(body["kind"], body["data"]["tag"]) for body in event_bodies(api.workspace_id)] == [("tag.added", "vip")]


@pytest.mark.parametrize(("name", "path"), [("vip", "vip"), ("a/b", "a%2Fb"), ("50% off", "50%25%20off"), ("ä", "ä")])
def test_a_tag_is_removed_whatever_its_name(api: Api, name: str, path: str) -> None:
    made = api.contact(email="ada@example.com", tags=[name, "other"])
    forget_events()

    job = api.done(api.delete(f"contacts/{made['id']}/tags/{path}"))

    assert job["status"] == "succeeded"
    assert api.show_contact(made["id"])["tags"] == ["other"]
    assert [(body["kind"], body["data"]["tag"]) for body in event_bodies(api.workspace_id)] == [("tag.removed", name)]


def test_removing_a_tag_that_is_not_there_changes_nothing(api: Api) -> None:
    made = api.contact(email="ada@example.com")
    forget_events()

    job = api.done(api.delete(f"contacts/{made['id']}/tags/vip"))

    assert job["status"] == "succeeded"
    assert api.show_contact(made["id"]) == made
    assert event_kinds(api.workspace_id) == []


# Events


def test_a_new_contact_is_an_event_with_all_its_fields_and_one_for_each_tag(api: Api) -> None:
    contact = api.told_contact(api.contact(email="ada@example.com", first_name="Ada", tags=["b", "a"])["id"])

    created, *tagged = event_bodies(api.workspace_id)

    assert created["kind"] == "contact.created"
    assert created["data"] == {"contact": contact}
    assert created["workspace_id"] == api.workspace_id
    assert re.fullmatch(r"evt_[0-9a-z]{26}", created["id"])
    assert [(body["kind"], body["data"]["tag"], body["data"]["contact"]) for body in tagged] == [
        ("tag.added", "a", contact),
        ("tag.added", "b", contact),
    ]


def test_a_change_is_an_event_with_the_names_of_the_changed_fields(api: Api) -> None:
    api.contact(email="ada@example.com", first_name="Ada")
    forget_events()

    changed = api.contact(email="ada@example.com", first_name="Eda", last_name="Lovelace", custom_fields={"a": 1})

    [body] = event_bodies(api.workspace_id)
    assert body["kind"] == "contact.updated"
    assert body["data"] == {
        "contact": api.told_contact(changed["id"]),
        "changed": ["custom_fields", "first_name", "last_name"],
    }


def test_an_upsert_that_changes_nothing_is_no_event(api: Api) -> None:
    fields: dict[str, Any] = {"email": "ada@example.com", "first_name": "Ada", "custom_fields": {"a": 1}, "tags": ["x"]}
    made = api.contact(**fields)
    forget_events()

    again = api.contact(**fields)

    assert again == made
    assert event_kinds(api.workspace_id) == []


def test_a_tag_alone_is_no_update(api: Api) -> None:
    api.contact(email="ada@example.com")
    forget_events()

    api.contact(email="ada@example.com", tags=["vip"])

    assert event_kinds(api.workspace_id) == ["tag.added"]


def test_true_is_another_custom_field_than_one(api: Api) -> None:
    api.contact(email="ada@example.com", custom_fields={"a": 1})
    forget_events()

    changed = api.contact(email="ada@example.com", custom_fields={"a": True})

    assert changed["custom_fields"]["a"] is True
    assert event_kinds(api.workspace_id) == ["contact.updated"]


# Deleting one


def test_a_deleted_contact_is_gone(api: Api) -> None:
    made = api.contact(email="ada@example.com")

    job = api.done(api.delete(f"contacts/{made['id']}"))

    assert job["status"] == "succeeded"
    assert api.get(f"contacts/{made['id']}").status_code == 404
    assert api.get("contacts").json["data"] == []
    assert event_kinds(api.workspace_id)[-1] == "contact.deleted"


def test_a_contact_can_be_made_again_after_it_was_deleted(api: Api) -> None:
    made = api.contact(email="ada@example.com")
    api.done(api.delete(f"contacts/{made['id']}"))

    assert api.contact(email="ada@example.com")["id"] != made["id"]


PERSONAL = ("ada@example.com", "Lovelace", "+4930123456", "customer-1", "likes tea")


def test_deleting_a_contact_erases_its_data_from_everything_stored(api: Api) -> None:
    api.endpoint()
    made = api.contact(
        email="ada@example.com",
        last_name="Lovelace",
        phone="+4930123456",
        external_id="customer-1",
        custom_fields={"note": "likes tea"},
    )
    api.contact(email="ada@example.com", last_name="Byron-Lovelace")
    database.rows(
        "INSERT INTO attempts (delivery_id, number, at, duration_ms, response_body)"
        " SELECT id, 1, now(), 5, 'hello ada@example.com' FROM deliveries"
    )
    assert [text for text in PERSONAL if text in everything_stored()] == list(PERSONAL)

    api.done(api.delete(f"contacts/{made['id']}"))

    assert [text for text in PERSONAL if text in everything_stored()] == []


def test_events_of_a_deleted_contact_keep_their_identifiers(api: Api) -> None:
    made = api.contact(email="ada@example.com", tags=["vip"])
    before = event_bodies(api.workspace_id)

    api.done(api.delete(f"contacts/{made['id']}"))

    assert event_bodies(api.workspace_id)[:-1] == [body | {"data": {"contact": {"id": made["id"]}}} for body in before]


def test_events_of_the_same_batch_are_erased_too(api: Api) -> None:
    made = api.contact(email="ada@example.com")
    api.patch(f"contacts/{made['id']}", {"last_name": "Lovelace"})
    api.delete(f"contacts/{made['id']}")

    api.apply()

    assert event_kinds(api.workspace_id) == ["contact.created", "contact.updated", "contact.deleted"]
    assert "Lovelace" not in everything_stored()


def test_deleting_a_contact_leaves_others_alone(api: Api, others: Api) -> None:
    made = api.contact(email="ada@example.com")
    api.contact(email="eve@example.com")
    others.contact(email="ada@example.com")

    api.done(api.delete(f"contacts/{made['id']}"))

    assert "eve@example.com" in str(event_bodies(api.workspace_id))
    assert "ada@example.com" in str(event_bodies(others.workspace_id))


@pytest.mark.parametrize(
    "payload",
    [{"email": "ADA@example.com"}, {"phone": "+551187654321"}, {"external_id": "customer-1", "first_name": "Ada"}],
    ids=str,
)
def test_deleting_a_contact_erases_what_broken_jobs_were_asked(
    api: Api, payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = api.contact(email="ada@example.com", phone="+5511987654321", external_id="customer-1")
    with monkeypatch.context() as broken:
        broken.setattr(contacts, "_alter", None)
        assert api.done(api.post("contacts", payload))["status"] == "failed"
    assert one("SELECT count(*) FROM jobs WHERE payload IS NOT NULL") == 1

    api.done(api.delete(f"contacts/{made['id']}"))

    assert one("SELECT count(*) FROM jobs WHERE payload IS NOT NULL") == 0


# Lists


@pytest.mark.parametrize("query", ["email=ann+shop@example.com", "q=ann+shop@example.com", "q=ann%2Bshop@"])
def test_a_plus_that_nobody_has_escaped_is_a_plus(api: Api, query: str) -> None:
    made = api.contact(email="ann+shop@example.com")

    assert [each["id"] for each in api.get(f"contacts?{query}").json["data"]] == [made["id"]]


def test_a_search_finds_what_is_equal_to_a_reader(api: Api) -> None:
    ways = [
        ("Zo\u00eb", "ZOE\u0308"),
        ("\uff29\uff2e\uff26\uff2f", "info"),
        ("B\u0130LG\u0130", "bilgi"),
        ("ΠΛΗΡΟΦΟΡΙΕΣ", "πληροφορίες"),
        ("Straße", "STRASSE"),
        ("an\u200bna", "Anna"),
    ]
    for one_way, other in ways:
        for name, sought in ((one_way, other), (other, one_way)):
            made = api.contact(external_id=ids.new("x"), first_name=name)
            found = api.get("contacts?" + urlencode({"q": sought})).json["data"]
            assert made["id"] in [each["id"] for each in found], (name, sought)
    assert api.get("contacts?" + urlencode({"q": "\uff05\uff05"})).json["data"] == []


@pytest.fixture
def three(api: Api) -> list[str]:
    """The identifiers of three contacts, newest first."""
    made = [
        api.contact(
            external_id="c-1", email="ada@example.com", phone="+4930123456", tags=["vip"], last_name="Lovelace"
        ),
        api.contact(external_id="c_2", email="Eve@example.com", first_name="Eve", tags=["vip", "beta"]),
        api.contact(external_id="100%", first_name="Zoë", last_name="Müller"),
    ]
    return [contact["id"] for contact in reversed(made)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [0, 1, 2]),
        ("email=ADA@EXAMPLE.COM", [2]),
        ("email=eve@example.com", [1]),
        ("email=nobody@example.com", []),
        ("phone=%2B4930123456", [2]),
        ("phone=+4930123456", [2]),
        ("phone=4930123456", [2]),
        ("phone=004930123456", [2]),
        ("q=+4930123456", [2]),
        ("external_id=c_2", [1]),
        ("external_id=C_2", []),
        ("tag=vip", [1, 2]),
        ("tag=beta", [1]),
        ("tag=vi", []),
        ("tag=vip&email=eve@example.com", [1]),
        ("q=lovel", [2]),
        ("q=EXAMPLE.com", [1, 2]),
        ("q=zoë", [0]),
        ("q=MÜLLER", [0]),
        ("q=930123", [2]),
        ("q=0%25", [0]),
        ("q=c_", [1]),
        ("q=%25%25", []),
        ("q=example&tag=beta", [1]),
        ("updated_since=2020-01-01T00:00:00Z", [0, 1, 2]),
        ("updated_since=2999-01-01T00:00:00%2B01:00", []),
    ],
)
def test_a_filter_finds(api: Api, three: list[str], query: str, found: list[int]) -> None:
    answer = api.get(f"contacts?{query}")

    assert answer.status_code == 200, answer.text
    assert [contact["id"] for contact in answer.json["data"]] == [three[number] for number in found]


def test_what_changed_since_is_found(api: Api, three: list[str]) -> None:
    database.rows("UPDATE contacts SET updated_at = %s WHERE id = %s", (clock.now() + timedelta(hours=1), three[1]))
    since = (clock.now() + timedelta(minutes=30)).isoformat().replace("+00:00", "Z")

    assert [contact["id"] for contact in api.get(f"contacts?updated_since={since}").json["data"]] == [three[1]]
