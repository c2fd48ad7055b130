"""Identifiers of contacts: an upsert finds by them, links those of one person, and takes none from anybody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from app import database
from app.domain.contacts.contacts import IDENTIFIERS
from tests.cast import Api, all_of, event_bodies, event_kinds, one

SHOP, OTHER_SHOP = {"external_id": "c-1"}, {"external_id": "c-2"}
ADA, LOVELACE = {"email": "ada@example.com"}, {"email": "lovelace@example.com"}
PHONE, OTHER_PHONE = {"phone": "+4930123456"}, {"phone": "+4930999999"}
NOTHING = dict.fromkeys(IDENTIFIERS, "")


def identifiers(contact: Mapping[str, Any]) -> dict[str, str]:
    """Those that the contact has."""
    return {name: contact[name] for name in IDENTIFIERS if contact[name] is not None}


# Finding


@pytest.mark.parametrize("identifier", [SHOP, ADA, PHONE], ids=str)
def test_each_identifier_finds_the_contact(api: Api, identifier: dict[str, str]) -> None:
    made = api.contact(**SHOP, **ADA, **PHONE)

    changed = api.contact(**identifier, first_name="Ada")

    assert (changed["id"], changed["first_name"]) == (made["id"], "Ada")
    assert one("SELECT count(*) FROM contacts") == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Ada@Example.com", "aDA@eXAMPLE.COM"),
        ("zoë@example.com", "ZOË@example.com"),
        ("ada@bücher.example", "ADA@BÜCHER.example"),
    ],
)
def test_an_email_address_finds_in_any_case(api: Api, before: str, after: str) -> None:
    made = api.contact(email=before)

    assert api.contact(email=after)["id"] == made["id"]


def test_external_ids_are_case_sensitive(api: Api) -> None:
    assert api.contact(external_id="c-1")["id"] != api.contact(external_id="C-1")["id"]


def test_an_identifier_that_is_null_finds_nobody_and_empties(api: Api) -> None:
    made = api.contact(**SHOP, **ADA)

    changed = api.contact(external_id=None, **ADA)

    assert (changed["id"], changed["external_id"]) == (made["id"], None)


def test_an_empty_identifier_of_a_new_contact_is_not_given(api: Api) -> None:
    first, second = api.contact(**NOTHING | ADA), api.contact(**NOTHING | LOVELACE)

    assert [identifiers(contact) for contact in (first, second)] == [ADA, LOVELACE]


def test_identifiers_are_of_one_workspace(api: Api, others: Api) -> None:
    ours = api.contact(**SHOP, **ADA, **PHONE)

    theirs = others.contact(**SHOP, **ADA, **PHONE)

    assert ours["id"] != theirs["id"]


# Linking: a contact that is there, what an upsert gives, and the identifiers that the contact then has
LINKS = [
    (ADA, SHOP | ADA, SHOP | ADA),
    (PHONE, SHOP | PHONE, SHOP | PHONE),
    (PHONE, ADA | PHONE, ADA | PHONE),
    (PHONE, SHOP | ADA | PHONE, SHOP | ADA | PHONE),
    (SHOP | PHONE, ADA | PHONE, SHOP | ADA | PHONE),
    (ADA | PHONE, SHOP | ADA, SHOP | ADA | PHONE),
    (ADA, SHOP | {"email": "ADA@example.com"}, SHOP | {"email": "ADA@example.com"}),
    # Those after the one that matches are changed.
    (SHOP, SHOP | ADA | PHONE, SHOP | ADA | PHONE),
    (SHOP | ADA, SHOP | LOVELACE, SHOP | LOVELACE),
    (SHOP | ADA | PHONE, SHOP | LOVELACE | OTHER_PHONE, SHOP | LOVELACE | OTHER_PHONE),
    (SHOP | ADA | PHONE, SHOP | LOVELACE | PHONE, SHOP | LOVELACE | PHONE),
    (SHOP | ADA | PHONE, ADA | OTHER_PHONE, SHOP | ADA | OTHER_PHONE),
    (ADA | PHONE, SHOP | ADA | OTHER_PHONE, SHOP | ADA | OTHER_PHONE),
    # Empty ones count as not given.
    (SHOP | ADA | PHONE, NOTHING | ADA, SHOP | ADA | PHONE),
    (SHOP | ADA | PHONE, NOTHING | PHONE, SHOP | ADA | PHONE),
    (ADA, NOTHING | SHOP | ADA, SHOP | ADA),
]


@pytest.mark.parametrize(("before", "given", "after"), LINKS, ids=str)
def test_an_upsert_links_identifiers(
    api: Api, before: dict[str, str], given: dict[str, str], after: dict[str, str]
) -> None:
    made = api.contact(**before)

    changed = api.contact(**given)

    assert changed["id"] == made["id"]
    assert identifiers(changed) == after
    for name, value in after.items():
        assert [contact["id"] for contact in api.get("contacts", query_string={name: value}).json["data"]] == [
            made["id"]
        ]


def test_a_newsletter_and_then_a_shop_make_one_contact(api: Api) -> None:
    subscriber = api.contact(**ADA, tags=["newsletter"])

    customer = api.contact(**SHOP, **ADA, first_name="Ada", tags=["customer"])

    assert (customer["id"], customer["tags"]) == (subscriber["id"], ["customer", "newsletter"])
    assert (customer["external_id"], customer["email"], customer["first_name"]) == ("c-1", "ada@example.com", "Ada")
    changed = event_bodies(api.workspace_id)[2]
    assert (changed["kind"], changed["data"]["changed"]) == ("contact.updated", ["external_id", "first_name"])
    assert event_kinds(api.workspace_id) == ["contact.created", "tag.added", "contact.updated", "tag.added"]


def test_what_a_contact_gave_up_makes_a_new_one(api: Api) -> None:
    made = api.contact(**SHOP, **ADA)
    api.contact(**SHOP, **LOVELACE)

    assert api.contact(**OTHER_SHOP, **ADA)["id"] != made["id"]


# Conflicts: the contacts that are there, what an upsert gives, the identifier in conflict, and the contact's number
CONFLICTS = [
    # The contact that matches has a different value.
    ([SHOP | ADA], OTHER_SHOP | ADA, "external_id", 0),
    ([SHOP | PHONE], OTHER_SHOP | PHONE, "external_id", 0),
    ([ADA | PHONE], LOVELACE | PHONE, "email", 0),
    ([ADA | PHONE], SHOP | LOVELACE | PHONE, "email", 0),
    ([SHOP | ADA | PHONE], OTHER_SHOP | LOVELACE | PHONE, "external_id", 0),
    ([SHOP | ADA], OTHER_SHOP | ADA | PHONE, "external_id", 0),
    # Another contact has it.
    ([SHOP, ADA], SHOP | ADA, "email", 1),
    ([SHOP, ADA], SHOP | {"email": "ADA@example.com"}, "email", 1),
    ([SHOP, PHONE], SHOP | PHONE, "phone", 1),
    ([ADA, PHONE], ADA | PHONE, "phone", 1),
    ([ADA, PHONE], SHOP | ADA | PHONE, "phone", 1),
    ([SHOP | LOVELACE, ADA, PHONE], SHOP | ADA | PHONE, "email", 1),
    ([SHOP | ADA, OTHER_SHOP | PHONE], SHOP | ADA | PHONE, "phone", 1),
    # Both: the first in order is named.
    ([SHOP | ADA, PHONE], OTHER_SHOP | ADA | PHONE, "external_id", 0),
]


@pytest.mark.parametrize(("contacts", "given", "field", "number"), CONFLICTS, ids=str)
def test_an_upsert_that_fits_no_single_contact_fails_and_changes_nothing(
    api: Api, contacts: list[dict[str, str]], given: dict[str, str], field: str, number: int
) -> None:
    made = [api.contact(**contact) for contact in contacts]

    job = api.done(api.post("contacts", given | {"first_name": "Eve", "tags": ["new"]}))

    assert job["status"] == "failed"
    problem = job["problem"]
    assert (problem["status"], problem["type"]) == (409, "https://bellhop.test/problems/conflict")
    assert (problem["conflicting_field"], problem["conflicting_contact_id"]) == (field, made[number]["id"])
    assert field in problem["detail"]
    assert [api.show_contact(contact["id"]) for contact in made] == made
    assert event_kinds(api.workspace_id) == ["contact.created"] * len(made)


def test_the_document_describes_the_members_of_a_conflict(api: Api) -> None:
    api.contact(**SHOP, **ADA)
    problem = api.done(api.post("contacts", OTHER_SHOP | ADA))["problem"]

    components = api.get("/api/v1/openapi.json").json["components"]

    conflict = components["responses"]["Conflict"]["content"]["application/problem+json"]["schema"]
    assert conflict == {"$ref": "#/components/schemas/Problem"}
    assert problem.keys() <= components["schemas"]["Problem"]["properties"].keys()


def test_the_problem_of_a_conflict_shows_no_personal_data(api: Api) -> None:
    api.contact(**SHOP, **ADA)

    job = api.done(api.post("contacts", OTHER_SHOP | ADA))

    assert job["status"] == "failed"
    assert [value for value in ("ada@", "c-1", "c-2") if value in json.dumps(job["problem"])] == []


def test_a_job_with_a_conflict_fails_alone(api: Api) -> None:
    api.contact(external_id="other", **ADA)
    before = api.post("contacts", SHOP | {"tags": ["vip"]})
    failing = api.post("contacts", OTHER_SHOP | ADA)
    after = api.post("contacts", {"external_id": "c-3"})
    database.rows("DELETE FROM events")

    api.apply()

    assert [api.job(job)["status"] for job in (before, failing, after)] == ["succeeded", "failed", "succeeded"]
    assert event_kinds(api.workspace_id) == ["contact.created", "tag.added", "contact.created"]


def test_writes_of_one_batch_link_what_those_before_them_made(api: Api) -> None:
    bodies = [ADA, SHOP | ADA, SHOP | PHONE, OTHER_SHOP | PHONE, SHOP | LOVELACE, OTHER_SHOP | ADA]
    jobs = [api.post("contacts", body) for body in bodies]

    api.apply()

    expected = ["succeeded"] * 3 + ["failed"] + ["succeeded"] * 2
    assert [api.job(job)["status"] for job in jobs] == expected
    found = [identifiers(contact) for contact in api.get("contacts").json["data"]]
    assert found == [OTHER_SHOP | ADA, SHOP | LOVELACE | PHONE]


@pytest.mark.parametrize("identifier", [SHOP, ADA, PHONE], ids=str)
def test_a_patch_to_anothers_identifier_is_a_conflict(api: Api, identifier: dict[str, str]) -> None:
    holder = api.contact(**identifier)
    made = api.contact(external_id="own")

    job = api.done(api.patch(f"contacts/{made['id']}", identifier))

    [field] = identifier
    problem = job["problem"]
    assert (problem["conflicting_field"], problem["conflicting_contact_id"]) == (field, holder["id"])
    assert api.show_contact(made["id"]) == made


def test_a_deleted_contact_leaves_its_identifiers_to_others(api: Api) -> None:
    api.done(api.delete(f"contacts/{api.contact(**SHOP, **ADA)['id']}"))
    kept = api.contact(**PHONE)

    assert identifiers(api.contact(**SHOP, **ADA, **PHONE)) == SHOP | ADA | PHONE
    assert all_of("SELECT id FROM contacts") == [kept["id"]]
