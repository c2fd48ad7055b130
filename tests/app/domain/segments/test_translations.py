"""Translations of conditions: where SQL decides, it says what Python says."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.channels.kinds import CHANNEL_KINDS
from app.database import database, rows, transaction
from app.domain.segments import scans
from app.domain.segments.translations import TURNING_ASCII, Translation
from app.domain.triggers import conditions
from app.domain.triggers.comparisons import COMPARISONS
from app.domain.triggers.conditions import holds
from app.lib import ids
from app.lib import json as json_lib
from app.lib.normalization import folded
from app.models.contacts import Contact
from tests.cast import Api

NOW = datetime(2026, 11, 25, 12, 0, 0, 123_456, tzinfo=UTC)

# Texts that compare in odd ways: other cases and spaces, numbers, times, and what looks like one of these.
ODD = [
    *(
        "",
        " ",
        "vip",
        "VIP",
        " Vip ",
        "straße",
        "STRASSE",
        "İ",
        "\u0131",
        "I",
        "ﬁ",
        "fi",
        "\u212a",
        "k",
        "Σ",
        "ς",
        "é",
    ),
    *("10", "10.0", " 10 ", "+10", "-10", "010", "1e1", "1e+16", "10.", ".5", "0.1", "0.30000000000000004"),
    *("9007199254740993", "999999999999999999", "1" * 19, "\u0661\u0660", "10\x1c", "\x1f10", "10\x85", "\xa010"),
    *(f"vi{each}p" for each in "\x85\xa0\xdf\u0130\u017f\u0307\u0323\u1e96\u2003\u2028\u212a\ufb01"),
    *("\uff36\uff29\uff30", "vi\u200bp", "vip\ufe0f", "vi\u0301p", "víp", "1\u00bd", "ΒΙΠ", "βίπ", "\u2167"),
    *("\uff11\uff10", "a\u030a", "vip\u3000", "\u2003vip", "\U0001f600vip", "vip\u0307"),
    *("true", "True", "false", "null", "None", "inf", "nan", "-", "[]", "{}"),
    *("2026-11-25", "2026-11-25T12:00:00.123Z", "2026-11-25t12:00:00z", "2026-11-25 12:00:00", "2026-02-30"),
    *("2026-11-31", "2026-11-25T12:00:00.123456+01:00", "0000-01-01", "0001-01-01", "9999-12-31", "2026-11-2"),
    *(
        "2026-11-25T24:00:00Z",
        " 2026-11-25",
        "2026-11-25T12:00Z",
        "20261125",
        "%",
        "25.11.2026",
        "3/4/2026",
        "25 €",
        "1.234,5",
        "\u0662\u0665",
        "%%",
        "_",
        "\\",
        "'",
        '"',
    ),
]
TEXT = st.sampled_from(ODD) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
ODD_NUMBERS = [0, 10, 10.0, 10.5, -10, 0.1, 0.30000000000000004, 1e16, 1e-7, 5e-324, 2**53 - 1, 2**53, -(2**53), 1e300]
NUMBER = st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15) | st.sampled_from(ODD_NUMBERS)
SCALAR = TEXT | NUMBER | st.booleans()
TIMES = [NOW.replace(microsecond=each) for each in (0, 122_999, 123_000, 123_456, 123_999, 124_000)]
TIME = st.datetimes(datetime(2026, 11, 24), datetime(2026, 11, 27)).map(
    lambda at: at.replace(tzinfo=UTC)
) | st.sampled_from(TIMES)
OPTIONAL_TEXT = st.none() | TEXT
CONTACT = st.fixed_dictionaries(
    {
        "first_name": OPTIONAL_TEXT,
        "email": OPTIONAL_TEXT,
        "locale": OPTIONAL_TEXT,
        "tags": st.lists(TEXT.filter(bool), max_size=3, unique=True),
        "custom_fields": st.dictionaries(
            st.sampled_from(["plan", "Plan", "PLÄN", "plän", "a.b", "a", " "]), SCALAR, max_size=3
        ),
        "opted_out": st.booleans(),
        "created_at": TIME,
        "updated_at": TIME,
    }
)
FURTHER = st.fixed_dictionaries(
    {
        "last_received_at": st.none() | TIME,
        "last_sent_at": st.none() | TIME,
        "channel_kinds": st.lists(st.sampled_from(sorted(CHANNEL_KINDS)), max_size=3, unique=True).map(sorted),
    }
)
FIELDS = st.sampled_from(
    [
        *("contact.first_name", "contact.email", "contact.locale", "contact.id", "contact.phone"),
        *("contact.tags", "contact.tags.0", "contact.custom_fields", "contact.custom_fields.plan"),
        *("contact.custom_fields.PLAN", "contact.custom_fields.PLän"),
        *(
            "contact.custom_fields.a.b",
            "contact.custom_fields.a",
            "contact.custom_fields.a.",
            "contact.custom_fields. ",
        ),
        *("contact.opted_out", "contact.created_at", "contact.updated_at", "contact.created_at.x", "contact"),
        *("contact.last_received_at", "contact.last_sent_at", "contact.channel_kinds", "contact.channel_kinds.0"),
    ]
)
ISO = TIME.map(lambda at: at.isoformat())


@st.composite
def comparisons(draw: Any) -> dict[str, Any]:
    comparison = draw(st.sampled_from(sorted(COMPARISONS)))
    found = {"field": draw(FIELDS), "is": comparison}
    if comparison in ("exists", "not_exists"):
        return found
    if comparison == "matches":
        return found | {"value": draw(st.sampled_from(["^v", "10", "[a-z]+", "", "i$"]))}
    if comparison == "one_of":
        return found | {"value": draw(st.lists(SCALAR | ISO, min_size=1, max_size=3))}
    if comparison in conditions.ORDERED and draw(st.booleans()):
        return found | {"days_ago": draw(st.integers(0, 2))}
    if draw(st.integers(0, 9)) == 0:
        return found | {"other": draw(FIELDS)}
    return found | {"value": draw(SCALAR | ISO | st.sampled_from(sorted(CHANNEL_KINDS)))}


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda some: {"all": some})
        | st.lists(inner, min_size=1, max_size=3).map(lambda some: {"any": some})
        | inner.map(lambda one: {"not": one})
    ),
    max_leaves=5,
)


def verdicts(translation: Translation, further: dict[str, dict[str, Any]]) -> dict[str, bool | None]:
    """What SQL says of each contact, whose further fields are given."""
    given_fields = {
        contact_id: {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()
        }
        for contact_id, fields in further.items()
    }
    query = f"""
        SELECT id, {translation.sql} FROM (
            SELECT contacts.*, (further.value->>'last_received_at')::timestamptz AS last_received_at,
                (further.value->>'last_sent_at')::timestamptz AS last_sent_at,
                ARRAY(SELECT jsonb_array_elements_text(further.value->'channel_kinds')) AS channel_kinds
            FROM contacts JOIN jsonb_each(%(further)s) AS further ON further.key = contacts.id) AS contact
    """
    return dict(rows(query, {**translation.values, "further": json.dumps(given_fields)}))


@contextmanager
def undone() -> Iterator[None]:
    """A transaction that leaves no trace."""
    with transaction(), suppress(RollBack), database.atomic():
        yield
        raise RollBack


class RollBack(Exception):
    """Ends a savepoint."""


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(CONTACT, FURTHER), min_size=1, max_size=4), st.lists(CONDITIONS, min_size=1, max_size=4))
def test_what_sql_decides_is_what_a_condition_means(
    api: Api, people: list[tuple[dict[str, Any], dict[str, Any]]], filters: list[dict[str, Any]]
) -> None:
    with undone():
        further = {}
        for fields, more in people:
            contact_id = ids.new("con")
            # Their keys are unique.
            email = None if fields["email"] is None else f"{fields['email']}{contact_id}"
            Contact.insert(id=contact_id, workspace_id=api.workspace_id, **{**fields, "email": email}).execute()
            further[contact_id] = more
        stored = {contact.id: contact for contact in Contact.select()}
        for condition in filters:
            if list(conditions.faults(condition)):
                continue
            fixed = conditions.at_time(condition, NOW)
            for contact_id, verdict in verdicts(Translation(fixed), further).items():
                known = scans.variables(stored[contact_id], further[contact_id])
                assert verdict in (None, holds(fixed, known)), (fixed, known)


FIELDS_OF_ONE = ("first_name", "tags", "custom_fields.plan", "created_at", "last_sent_at")


@pytest.mark.parametrize("comparison", sorted(COMPARISONS.keys() - {"exists", "not_exists", "matches", "one_of"}))
def test_each_odd_value_is_compared_with_each_other(api: Api, comparison: str) -> None:
    found = [*ODD, *ODD_NUMBERS, True, False]
    further = {}
    with undone():
        for number, value in enumerate(found):
            contact_id, is_text, at = ids.new("con"), isinstance(value, str), TIMES[number % len(TIMES)]
            fields = {"first_name": value if is_text else None, "tags": [value] if is_text and value else []}
            fields |= {"custom_fields": {"plan": value}, "created_at": at, "updated_at": at}
            Contact.insert(id=contact_id, workspace_id=api.workspace_id, **fields).execute()
            further[contact_id] = {"last_received_at": None, "last_sent_at": at, "channel_kinds": []}
        known = {each.id: scans.variables(each, further[each.id]) for each in Contact.select()}
        decided = 0
        for value in [*found, 2**53 + 1, *map(json_lib.timestamp, TIMES)]:
            for field in FIELDS_OF_ONE:
                condition = {"field": f"contact.{field}", "is": comparison, "value": value}
                for contact_id, verdict in verdicts(Translation(condition), further).items():
                    assert verdict in (None, holds(condition, known[contact_id])), (condition, known[contact_id])
                    decided += verdict is not None
    share = decided / (len(found) + len(TIMES)) / len(FIELDS_OF_ONE) / len(found)
    assert share > (0.05 if comparison == "has_word" else 0.3)


COMMON = [
    {"field": "contact.tags", "is": "contains", "value": "VIP"},
    {"field": "contact.tags", "is": "not_contains", "value": "vip"},
    {"field": "contact.first_name", "is": "starts_with", "value": "a"},
    {"field": "contact.email", "is": "contains", "value": "@example"},
    {"field": "contact.opted_out", "is": "equals", "value": False},
    {"field": "contact.locale", "is": "one_of", "value": ["de", "en-GB"]},
    {"field": "contact.phone", "is": "not_exists"},
    {"field": "contact.created_at", "is": "at_most", "days_ago": 0},
    {"field": "contact.last_received_at", "is": "less_than", "days_ago": 60},
    {"field": "contact.channel_kinds", "is": "contains", "value": "whatsapp"},
    {"field": "contact.custom_fields.orders", "is": "greater_than", "value": 3},
    {"field": "contact.custom_fields.last_bought_at", "is": "less_than", "days_ago": 60},
    {"field": "contact.custom_fields.plan", "is": "equals", "value": "gold"},
    {"field": "contact.custom_fields.member", "is": "equals", "value": True},
]


@pytest.mark.parametrize("condition", COMMON, ids=lambda each: f"{each['field']} {each['is']}")
def test_sql_decides_about_what_is_common(api: Api, condition: dict[str, Any]) -> None:
    fields = {"orders": 5, "plan": "Gold", "member": True, "last_bought_at": "2026-08-01T10:00:00.000Z"}
    api.contact(first_name="Ada", email="ada@example.com", tags=["Vip", "x"], locale="en-GB", custom_fields=fields)
    received = {"last_received_at": NOW - timedelta(days=100), "last_sent_at": None, "channel_kinds": ["whatsapp"]}
    further = {contact.id: received for contact in Contact.select()}

    found = verdicts(Translation(conditions.at_time(condition, NOW + timedelta(days=1))), further)

    assert set(found.values()) <= {True, False}


def test_all_characters_that_turn_ascii_are_known() -> None:
    turning = re.compile(f"[{TURNING_ASCII}]")
    others = [each for each in map(chr, range(0x80, sys.maxunicode + 1)) if not turning.match(each)]

    assert [each for each in others if not stays_on_its_own(each)] == []
    for each in "éłßςЖ\u05d0\u0627한漢🙂":
        assert (turning.match(each) is None) == (each != "ß"), each


def stays_on_its_own(character: str) -> bool:
    """Whether it stands beyond ASCII when it is folded, and changes no letter of ASCII before it."""
    alone = folded(character)
    if any(each.isascii() or each.isspace() for each in alone or " "):
        return False
    if not unicodedata.combining(unicodedata.normalize("NFKD", character)[0]):
        return True
    return all(folded(before + character) == folded(before) + alone for before in map(chr, range(128)))


def test_any_number_of_values_makes_no_larger_statement() -> None:
    def size(number: int) -> int:
        values = [f"value {each}" for each in range(number)] + list(range(number))
        return len(Translation({"field": "contact.custom_fields.x", "is": "one_of", "value": values}).sql)

    assert size(1) == size(50)
