"""Fields with values that they cannot have: each is pointed at, and nothing is left behind."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from marshmallow import validate

from app.lib.schemas import EMPTY, Time
from tests.surface import Scene, expect

UNKNOWN = "01kaj5bd40e6rr3f5y2kq0w9xz"
HTTPS = "https://shop.example/hooks"
SALE = {"amount": "19.90", "currency": "EUR"}
BOOKING = {"title": "Haircut", "starts_at": "2026-11-24T12:00:00Z", "ends_at": "2026-11-24T12:45:00Z"}
IDENTIFIERS = [f"con_{UNKNOWN}", f"sal_{UNKNOWN}", "x", "", "nul\0", None, 1, ["x"]]
# Earlier and later than UTC has any time.
FIRST, LAST = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"
TIMES = ["yesterday", "", "2026-11-24", "2026-11-24T12:00:00", "2026-11-24T24:00:00Z", FIRST, LAST, 1795521600, None]

# Wrong values by the pointer to what is wrong in them, whose first part is the field.
CONTACT: dict[str, list[Any]] = {
    "/email": [
        *("no address", "a@b@example.com", "a\r\nBcc: x@example.com", "x" * 250 + "@example.com", 1),
        *(["a@example.com"], "nul\0@example.com"),
    ],
    "/phone": ["030123456", "+1", "+49" + "1" * 30, "call me", 4930123456],
    "/external_id": ["x" * 256, 17, "nul\0"],
    "/first_name": ["x" * 256, {"a": 1}, "nul\0"],
    "/last_name": [False],
    "/locale": ["english", "en-"],
    "/timezone": ["Europe/Atlantis", "../../etc/passwd"],
    "/tags": ["vip", ["t"] * 101, None],
    "/tags/0": [["   "], ["x" * 101], ["a\nb"], ["nul\0"], [None]],
    "/tags/1": [["ok", ""]],
    "/custom_fields": [[], None, {str(number): 1 for number in range(101)}],
    "/custom_fields/": [{"": 1}],
    "/custom_fields/a": [{"a": value} for value in ([], {"b": 1}, "nul\0", 2**53 + 1, -1e300)],
    "/custom_fields/a~1b": [{"a/b": "x" * 4097}],
    "/opted_out": ["yes", 1, None],
}
ENDPOINT: dict[str, list[Any]] = {
    "/address": [
        *("http://shop.example/hooks", "ftp://shop.example", "shop.example", "https://", None, 1),
        *("https://user@shop.example/", "https://user:password@shop.example/", "https://10.0.0.1/"),
        *("https://192.168.1.1:8443/", "https://169.254.169.254/latest/meta-data", "https://[::ffff:10.0.0.1]/"),
        *("https://[fe80::1]/", "https://0x0a000001/", "https://shop.example/" + "x" * 2048),
        *("https://shop.example:0/", "https://shop.example:99999/", "https://shop.example/nul\0"),
    ],
    "/events": [[], "*", None, ["*"] * 101],
    "/events/0": [["contact.*"], [1]],
    "/events/1": [["contact.created", "contact.exploded"]],
    "/description": ["x" * 501, 1, "nul\0"],
    "/state": ["active"],
    "/secret": ["whsec_mine"],
}
SALES: dict[str, list[Any]] = {
    "/contact_id": IDENTIFIERS,
    "/amount": [
        *(19.9, 20, True, None, ["19.90"], "", "19,90", "1e3", "NaN", "-19.90", "19.901", "1000000000000000"),
        *("9" * 100_000, "19.90\n", "١٩"),
    ],
    "/currency": ["eur", "EURO", "XXX", "XAU", "", None, 978],
    "/reference": ["x" * 256, 17, "nul\0"],
    "/occurred_at": [each for each in TIMES if each != ""],
    "/status": ["paid"],
}
BOOKINGS: dict[str, list[Any]] = {
    "/contact_id": IDENTIFIERS,
    "/title": ["", "x" * 256, "nul\0", None, 1],
    "/starts_at": TIMES,
    "/ends_at": [*TIMES, "2026-11-24T12:00:00Z", "2026-11-24T12:00:00.000999Z", "2026-11-24T12:30:00+01:00"],
    "/status": ["cancelled"],
}
RESENDS: dict[str, list[Any]] = {
    "/statuses": [[], "failed", None, ["failed"] * 5],
    "/statuses/1": [["failed", "cancelled"]],
    "/kinds": [[], "contact.created", ["tag.added"] * 101],
    "/kinds/0": [["*"]],
    "/kinds/1": [["contact.created", "contact.exploded"]],
    "/since": TIMES,
    "/until": TIMES,
    "/dry_run": ["yes", 1],
    "/endpoint_id": [f"whe_{UNKNOWN}"],
}
TAG = {"/name": ["", "x" * 101, None, 1, "a\tb"]}
TEST = {"/kind": [None, "*", "", "contact.exploded", "contact.*", "Contact.created", "contact.created\0", 1, ["x"]]}
ENABLE = {"/release_held": [1, "true", None], "/release": [True]}


def _shortly(value: object) -> str:
    return str(value)[:60]


@pytest.mark.parametrize(
    ("name", "body", "faults"),
    [
        ("POST /contacts", {"external_id": "fine"}, CONTACT),
        ("PATCH /contacts/<contact_id>", {"external_id": "fine"}, CONTACT),
        ("POST /contacts/<contact_id>/tags", {}, TAG),
        ("POST /sales", SALE, SALES),
        ("POST /bookings", BOOKING, BOOKINGS),
        ("POST /messages", {"text": "Hello"}, {"/contact_id": IDENTIFIERS}),
        ("POST /automations/<automation_id>/start", {}, {"/contact_id": IDENTIFIERS}),
        ("POST /webhooks/endpoints", {"address": HTTPS, "events": ["*"]}, ENDPOINT),
        ("PATCH /webhooks/endpoints/<endpoint_id>", {}, ENDPOINT),
        ("POST /webhooks/endpoints/<endpoint_id>/test", {}, TEST),
        ("POST /webhooks/endpoints/<endpoint_id>/enable", {}, ENABLE),
        ("POST /webhooks/endpoints/<endpoint_id>/resend", {}, RESENDS),
        ("POST /webhooks/endpoints/<endpoint_id>/resend", {"dry_run": True}, RESENDS),
    ],
    ids=_shortly,
)
def test_a_wrong_field_is_pointed_at(
    scene: Scene, name: str, body: dict[str, Any], faults: dict[str, list[Any]]
) -> None:
    operation = scene.named(name)
    valid = scene.body(operation) | body

    for pointer, values in faults.items():
        field = pointer.split("/")[1]
        expect(
            f"422 validation-failed {pointer}",
            ((repr(value)[:60], scene.ask(operation, body=valid | {field: value})) for value in values),
        )


AT_NOON = {"since": "2026-01-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("name", "body", "pointers"),
    [
        ("POST /contacts", {"email": "x", "phone": "y", "timezone": "z"}, "/email /phone /timezone"),
        ("POST /webhooks/endpoints", {"address": "http://x", "events": []}, "/address /events"),
        ("POST /webhooks/endpoints", {}, "/address /events"),
        ("POST /webhooks/endpoints", {"address": HTTPS}, "/events"),
        ("POST /webhooks/endpoints", {"events": ["*"]}, "/address"),
        ("POST /webhooks/endpoints/<endpoint_id>/test", {}, "/kind"),
        ("POST /webhooks/endpoints/<endpoint_id>/resend", AT_NOON | {"until": "2026-01-01T12:00:00Z"}, "/until"),
        ("POST /webhooks/endpoints/<endpoint_id>/resend", AT_NOON | {"until": "2026-01-01T12:59:59+01:00"}, "/until"),
        ("POST /contacts/<contact_id>/tags", {}, "/name"),
        ("POST /sales", {}, "/amount /contact_id /currency"),
        ("POST /sales", {"contact_id": "con_1", "amount": "x", "currency": "y"}, "/amount /currency"),
        ("POST /sales", {"contact_id": "con_1", "amount": "1.5", "currency": "JPY"}, "/amount"),
        ("POST /bookings", {}, "/contact_id /ends_at /starts_at /title"),
        ("POST /bookings", BOOKING | {"contact_id": "con_1", "starts_at": "x", "ends_at": "y"}, "/ends_at /starts_at"),
        ("POST /automations/<automation_id>/start", {}, "/contact_id"),
        ("POST /messages", {}, "/contact_id /text"),
    ],
    ids=_shortly,
)
def test_all_that_is_wrong_or_missing_is_pointed_at(
    scene: Scene, name: str, body: dict[str, Any], pointers: str
) -> None:
    expect(f"422 validation-failed {pointers}", [(name, scene.ask(scene.named(name), body=body))])


def test_an_upsert_without_an_identifier_is_invalid_as_a_whole(scene: Scene) -> None:
    nothing: list[dict[str, Any]] = [{}, {"first_name": "Ada"}, {"email": None}, {"email": ""}]
    nothing += [dict.fromkeys(("external_id", "email", "phone")), {"external_id": "", "email": None, "phone": ""}]
    upsert = scene.named("POST /contacts")

    expect("422 validation-failed whole", ((body, scene.ask(upsert, body=body)) for body in nothing))


# Filters


def wrong_values(field: Any) -> list[str]:
    """What no filter of this type can be; none can be empty, or hold U+0000."""
    if isinstance(field, Time):
        return ["", "%00", *(quote(time) for time in TIMES if isinstance(time, str))]
    is_chosen = any(isinstance(rule, validate.OneOf) for rule in field.validators)
    return ["", "%00", "lost", "none%20of%20these"] if is_chosen else ["", "%00"]


def test_a_wrong_filter_is_pointed_at(scene: Scene) -> None:
    queried = [operation for operation in scene.views if operation.query]

    for operation in queried:
        for name, field in operation.query.load_fields.items():
            expect(
                f"422 validation-failed /{name}",
                ((each, scene.ask(operation, query=f"{name}={each}")) for each in wrong_values(field)),
            )
            refused = scene.ask(operation, query=f"{name}=").get_json(force=True)
            assert refused["errors"][0]["detail"] == EMPTY


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("contacts?phone=x", "/phone"),
        ("contacts?q=a", "/q"),
        ("contacts?q=" + "a" * 101, "/q"),
        ("webhooks/audit-log?action=contacts.upsert", "/action"),
    ],
)
def test_a_filter_that_can_find_nothing_is_pointed_at(scene: Scene, path: str, pointer: str) -> None:
    expect(f"422 validation-failed {pointer}", [(path, scene.ours.get(path))])


@pytest.mark.parametrize(
    "filtered", ["contacts?updated_since", "webhooks/deliveries?since", "webhooks/deliveries?until"]
)
def test_a_time_at_the_end_of_the_calendar_is_a_time_if_utc_has_it(scene: Scene, filtered: str) -> None:
    ends = ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00-14:00"]
    ends += ["9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59%2B14:00"]

    expect("200", ((time, scene.ours.get(f"{filtered}={time}&limit=1")) for time in ends))
