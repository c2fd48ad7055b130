"""The guide to automations says what the code does, and its recipes do what they promise."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.database import rows
from app.domain.automations.simulations import SimulationInput, simulate
from app.domain.automations.steps import base
from app.domain.triggers import automation_listeners, conditions, due_starts
from app.domain.triggers.event_kinds import EVENTS
from app.lib import json
from app.lib.json import timestamp
from app.lib.liquids import TAGS
from app.lib.template_filters import FILTERS
from app.models.automations import Automation
from app.models.contacts import Contact
from app.models.runs import STATUSES, Run
from tests.automations import make_automation
from tests.cast import Api, all_of, one
from tests.docs import steps
from tests.docs.automations import PAGE, go_on, publish, recipes, sent, statuses, tags_of
from tests.talks import make_member, receive

RECIPES = recipes()


def named(heading: str, cells: str = r"^\| (`.+?`) \|") -> list[str]:
    """The names in code in the first column of the tables under a heading, or wherever `cells` says."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"`(\w[\w.]*)`", "\n".join(re.findall(cells, section, re.MULTILINE | re.DOTALL)))


# The guide


def test_the_section_on_steps_is_made_from_the_kinds() -> None:
    assert steps.written() == steps.section(), "run python -m tests.docs.steps"


def test_the_guide_names_all_that_may_be_written() -> None:
    of_triggers = named("What starts a run, and what ends it")
    filters, tags = named("Templates", r"^Filters:(.+?)\n\n"), named("Templates", r"^Tags:(.+?)\n\n")

    assert set(of_triggers) >= set(EVENTS)
    assert set(filters) == FILTERS.keys()
    assert set(tags) == {tag.name for tag in TAGS if tag.name.isalpha()} | {"for", "echo", "raw"}
    assert named("Conditions") == ["is", *conditions.COMPARISONS]


def test_the_guide_names_all_that_may_become_of_a_run() -> None:
    names = named("Runs, their log, and why they fail")

    assert names[: len(STATUSES) + 1] == ["status", *STATUSES]
    assert names[len(STATUSES) + 1 :] == ["failure.code", *base.FailureCode.__args__]


# Its recipes


def install(shop: Api, number: int, **changes: Any) -> str:
    """Creates and publishes the automation of a recipe, and returns its identifier."""
    [body] = [body for heading, body in RECIPES.items() if heading.startswith(f"{number}.")]
    return publish(shop, body | changes)


def test_there_are_ten_recipes_in_order() -> None:
    assert [int(heading.partition(".")[0]) for heading in RECIPES] == list(range(1, 11))


@pytest.mark.parametrize("heading", RECIPES)
def test_each_recipe_is_accepted_and_published(shop: Api, heading: str) -> None:
    for named in set(re.findall(rb"aut_\w+", json.dumps(RECIPES[heading]))):
        make_automation(shop.workspace_id, id=named.decode())

    publish(shop, RECIPES[heading])


@pytest.mark.parametrize("heading", [heading for heading in RECIPES if not heading.startswith(("4.", "10."))])
def test_a_recipe_that_needs_no_event_and_no_other_automation_can_be_simulated(shop: Api, heading: str) -> None:
    definition = RECIPES[heading]["definition"]
    automation = Automation(id="aut_1", workspace_id=shop.workspace_id, name="Draft", definition=definition)

    [way], _ = simulate(automation, None, SimulationInput(variables={"items": []}, replies=["Yes"]))

    assert way.run.status == "completed", way.run.failure
    assert {entry.status for entry in way.log} <= {"succeeded", "waiting"}
    assert sent() == []


def test_1_the_welcome_series_ends_with_a_voucher_for_those_who_bought_nothing(shop: Api) -> None:
    install(shop, 1)
    ada, bob = (
        shop.contact(email="ada@example.com", phone="+4930123456", first_name="Ada"),
        shop.contact(email="bob@example.com", phone="+4930123457"),
    )
    go_on(shop)
    assert sent() == ["Hello Ada, nice to meet you!", "Hello there, nice to meet you!"]
    go_on(shop, pass_time=True)
    shop.done(shop.post(f"contacts/{bob['id']}/tags", {"name": "customer"}))

    go_on(shop, pass_time=True)

    assert (tags_of(ada), tags_of(bob)) == (["voucher-sent"], ["customer"])
    assert sent()[-1] == "Here is 10 % off your first order: HELLO10"
    assert statuses() == [("completed", None)] * 2


def test_2_the_abandoned_cart_is_named_until_a_sale_ends_it(shop: Api) -> None:
    automation_id = install(shop, 2)
    ada = shop.contact(email="ada@example.com", phone="+4930123456")
    variables = {"cart_url": "https://shop.example/cart/1", "items": [{"name": "Hat", "price": "19.90"}], "order": "17"}
    shop.post(f"automations/{automation_id}/start", {"contact_id": ada["id"], "variables": variables})
    shop.apply()
    go_on(shop)

    go_on(shop, pass_time=True)
    assert sent() == ["You left something in your cart:\n- Hat, 19.90 €\nhttps://shop.example/cart/1"]
    shop.sale(ada["id"], reference="16")
    assert statuses() == [("waiting", None)]
    shop.sale(ada["id"], reference="17")

    assert statuses() == [("cancelled", "exit")]


def test_3_a_large_sale_makes_a_vip_once(shop: Api) -> None:
    install(shop, 3)
    ada = shop.contact(email="ada@example.com", phone="+4930123456")
    shop.sale(ada["id"], amount="500.00", reference="1")
    go_on(shop)
    assert tags_of(ada) == []

    for reference in ("2", "3"):
        shop.sale(ada["id"], amount="500.01", currency="EUR", reference=reference)
        go_on(shop)

    assert tags_of(ada) == ["vip"]
    assert sent() == ["Thank you for 500.01 EUR! From now on, you have free shipping."]
    assert len(statuses()) == 2


def test_4_a_booking_is_recalled_a_day_before_in_the_contacts_time_zone(shop: Api) -> None:
    install(shop, 4)
    ada = shop.contact(email="ada@example.com", phone="+4930123456", timezone="Europe/Berlin")
    for day in (20, 21):
        shop.booking(
            ada["id"], title="Fitting", starts_at=f"2099-07-{day}T22:30:00Z", ends_at=f"2099-07-{day}T23:00:00Z"
        )
    assert all_of("SELECT at FROM waiting_starts ORDER BY at") == [
        datetime(2099, 7, day - 1, 22, 30, tzinfo=UTC) for day in (20, 21)
    ]
    second = one("SELECT id FROM bookings ORDER BY starts_at DESC LIMIT 1")
    shop.done(shop.post(f"bookings/{second}/cancel"))

    rows("UPDATE bookings SET starts_at = now() + interval '1 day', ends_at = now() + interval '2 days' RETURNING 1")
    rows("UPDATE waiting_starts SET at = starts_at - interval '1 day' FROM bookings WHERE booking_id = bookings.id")
    due_starts.start_some()
    go_on(shop)

    starts = one("SELECT starts_at FROM bookings LIMIT 1").astimezone(ZoneInfo("Europe/Berlin"))
    assert sent() == [f"See you on {starts:%d %B at %H:%M}: Fitting"]
    assert statuses() == [("completed", None)]


def test_4_a_booking_at_the_last_minute_is_confirmed_at_once_unless_it_is_cancelled(shop: Api) -> None:
    install(shop, 4)
    starts = datetime.now(UTC) + timedelta(hours=2)
    contact_id = shop.contact(email="ada@example.com", phone="+4930123456")["id"]
    first, _ = [
        shop.booking(contact_id, starts_at=timestamp(starts), ends_at=timestamp(starts + timedelta(hours=1)))["id"]
        for _ in range(2)
    ]
    due_starts.start_some()
    shop.done(shop.post(f"bookings/{first}/cancel"))

    go_on(shop)

    assert sorted(statuses()) == [("cancelled", "exit"), ("completed", None)]


@pytest.mark.parametrize(
    ("reply", "tags", "last"),
    [
        ("YES please", ["newsletter", "newsletter-confirmed"], "Thank you, you are on the list."),
        ("no", [], "Alright, we will not write to you."),
        (None, [], "Shall we send you our newsletter? Please answer YES or NO."),
    ],
)
def test_5_consent_is_asked_for(shop: Api, reply: str | None, tags: list[str], last: str) -> None:
    install(shop, 5)
    ada = shop.contact(email="ada@example.com", phone="+4930123456", tags=["newsletter"])
    go_on(shop)

    if reply is None:
        go_on(shop, pass_time=True)
    else:
        receive(shop.workspace_id, ada["id"], one("SELECT id FROM channels"), reply)
        go_on(shop)

    assert tags_of(ada) == tags
    assert sent()[-1] == last
    assert statuses() == [("completed", None)]


def test_6_a_lead_becomes_hot_by_what_it_does(shop: Api) -> None:
    install(shop, 6)
    ada = shop.contact(email="ada@example.com", phone="+4930123456")
    shop.booking(ada["id"])
    go_on(shop)
    assert Contact.get_by_id(ada["id"]).custom_fields == {"score": "20"}

    receive(shop.workspace_id, ada["id"], one("SELECT id FROM channels"), "Hello?")
    shop.sale(ada["id"])
    go_on(shop)

    assert Contact.get_by_id(ada["id"]).custom_fields == {"score": "75"}
    assert tags_of(ada) == ["hot-lead"]


@pytest.mark.parametrize(
    ("body", "error", "tags"),
    [
        ('{"approved": true, "limit": 500}', None, ["pay-later"]),
        ('{"approved": false}', None, []),
        ("", {"code": "timeout", "detail": "No answer."}, ["credit-check-failed", "pay-later"]),
    ],
)
def test_7_the_answer_of_a_server_decides(shop: Api, body: str, error: Any, tags: list[str]) -> None:
    install(shop, 7)
    ada = shop.contact(email="ada@example.com", phone="+4930123456", external_id="7", tags=["pay-later"])
    go_on(shop)
    [request] = all_of("SELECT request FROM run_requests")
    assert json.loads(request["body"]) == {"customer": "7", "email": "ada@example.com"}

    answer = {"status": None if error else 200, "body": body, "error": error, "is_whole": True}
    go_on(shop, answer=answer | {"duration_ms": 5, "attempts": 1})

    assert tags_of(ada) == tags
    assert sent() == (["You can pay later, up to 500 €."] if "true" in body else [])
    assert statuses() == [("completed", None)]


def test_8_who_asks_for_a_person_gets_one(shop: Api) -> None:
    member_id = make_member(shop.workspace_id)
    heading = next(heading for heading in RECIPES if heading.startswith("8."))
    definition = json.loads(re.sub(rb"mem_\w+", member_id.encode(), json.dumps(RECIPES[heading]["definition"])))
    install(shop, 8, definition=definition)
    ada = shop.contact(email="ada@example.com", phone="+4930123456")

    for text in ("Hello", "Let me talk to a HUMAN"):
        receive(shop.workspace_id, ada["id"], one("SELECT id FROM channels"), text)
        go_on(shop)

    assert sent() == ["A colleague will be with you shortly."]
    assert one("SELECT assignee_id FROM conversations") == member_id
    assert tags_of(ada) == ["wants-a-person"]


def test_9_each_sale_starts_the_clock_anew(shop: Api) -> None:
    install(shop, 9)
    ada = shop.contact(email="ada@example.com", phone="+4930123456")
    for reference in ("1", "2"):
        shop.sale(ada["id"], reference=reference)
        go_on(shop)
    assert statuses() == [("cancelled", "exit"), ("waiting", None)]

    for _ in range(2):
        go_on(shop, pass_time=True)

    assert sent() == ["We have not seen you for a while, dear customer. Here is 15 % off: BACK15"]
    assert tags_of(ada) == ["lapsed"]


@pytest.mark.parametrize(("plan", "variables"), [("Business", {"seats": "1"}), ("free", {})])
def test_10_the_plan_decides_which_automation_is_started(shop: Api, plan: str, variables: dict[str, str]) -> None:
    listed = re.findall(rb"aut_\w+", json.dumps(RECIPES[next(each for each in RECIPES if each.startswith("10."))]))
    business, personal = (make_automation(shop.workspace_id, id=each.decode()) for each in listed)
    install(shop, 10)

    shop.contact(email="ada@example.com", phone="+4930123456", custom_fields={"plan": plan})
    go_on(shop)

    started = Run.select().where(Run.automation_id == (business if plan == "Business" else personal)).get()
    assert (started.status, started.variables) == ("completed", variables)
    assert len(statuses()) == 2
    assert one("SELECT custom_fields->>'onboarding_began' FROM contacts") == f"{datetime.now(UTC):%Y-%m-%d}"


def test_a_recipe_listens_to_its_triggers_and_exits(shop: Api) -> None:
    automation_id = install(shop, 2)

    assert all_of("SELECT key FROM automation_listeners WHERE automation_id = %s", automation_id) == ["sale.recorded"]
    assert automation_listeners.UNHEARD.isdisjoint(EVENTS)
