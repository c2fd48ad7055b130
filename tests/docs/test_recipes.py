"""The further recipes do what they promise."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.database import rows
from app.domain.automations.simulations import SimulationInput, simulate
from app.domain.segments import schedules
from app.domain.triggers import due_starts
from app.lib import clock, json
from app.models.automations import Automation
from app.models.contacts import Contact
from app.models.runs import Run
from tests.cast import Api, all_of, one
from tests.docs.automations import FURTHER, go_on, publish, recipes, sent, statuses, tags_of
from tests.talks import assign, make_member, receive

RECIPES = recipes(FURTHER)


def install(shop: Api, number: int) -> str:
    return publish(shop, recipe(number))


def recipe(number: int) -> dict[str, Any]:
    [body] = [body for heading, body in RECIPES.items() if heading.startswith(f"{number}.")]
    return body


def start(shop: Api, number: int, contact: dict[str, Any], **variables: Any) -> None:
    shop.post(f"automations/{install(shop, number)}/start", {"contact_id": contact["id"], "variables": variables})
    shop.apply()
    go_on(shop)


def write(shop: Api, contact: dict[str, Any], *texts: str) -> None:
    """The contact writes these, one after another; what follows from each is carried out."""
    for text in texts:
        receive(shop.workspace_id, contact["id"], one("SELECT id FROM channels"), text)
        go_on(shop)


@pytest.fixture
def ada(shop: Api) -> dict[str, Any]:
    return shop.contact(email="ada@example.com", phone="+4930123456")


def test_they_are_in_order() -> None:
    assert [int(heading.partition(".")[0]) for heading in RECIPES] == list(range(11, 25))


@pytest.mark.parametrize("heading", [heading for heading in RECIPES if not heading.startswith("19.")])
def test_one_that_needs_no_member_can_be_simulated(shop: Api, heading: str) -> None:
    definition = RECIPES[heading]["definition"]
    automation = Automation(id="aut_1", workspace_id=shop.workspace_id, name="Draft", definition=definition)
    variables = {"items": [{"sku": "hat", "name": "Hat", "count": 2}], "question": "Well?"}
    variables |= {"callback": "https://flows.example/1", "arrives_at": "2099-11-21T16:00:00Z"}

    [way], _ = simulate(automation, None, SimulationInput(variables=variables, replies=["9", "20", "ada@example.com"]))

    assert way.run.status == "completed", way.run.failure
    assert way.log
    assert sent() == []


def test_11_who_joins_is_asked_until_the_answers_can_be_used(shop: Api, ada: dict[str, Any]) -> None:
    install(shop, 11)

    write(shop, ada, "I want to join", "Ada", "old", "32", "no", "Ada@Lovelace.example")

    kept = Contact.get_by_id(ada["id"])
    assert (kept.first_name, kept.email, kept.custom_fields) == ("Ada", "Ada@lovelace.example", {"age": "32"})
    assert tags_of(ada) == ["registered"]
    assert sent()[2:] == [
        "Please answer with a number, such as 32.",
        "And your e-mail address?",
        "That is no e-mail address. Please try again.",
        "You are in, Ada.",
    ]


def test_11_who_is_too_young_is_turned_away(shop: Api, ada: dict[str, Any]) -> None:
    install(shop, 11)

    write(shop, ada, "join", "Ada", "15")

    assert sent()[-1] == "You have to be 16 to join. See you later!"
    assert tags_of(ada) == []


@pytest.mark.parametrize(("status", "tags"), [(201, []), (422, ["lead-not-in-crm"]), (None, ["lead-not-in-crm"])])
def test_12_a_lead_is_handed_to_the_crm(shop: Api, ada: dict[str, Any], status: int | None, tags: list[str]) -> None:
    start(shop, 12, ada)
    write(shop, ada, "Analytical Engines", "many", "12", "+49 30 123457")
    [request] = all_of("SELECT request FROM run_requests")
    answers = {"company": "Analytical Engines", "seats": "12", "phone": "+4930123457"}
    assert json.loads(request["body"]) == {"contact": ada["id"], **answers}

    error = None if status else {"code": "timeout", "detail": "No answer."}
    answer = {"status": status, "body": "", "error": error, "is_whole": True, "duration_ms": 5, "attempts": 1}
    go_on(shop, answer=answer)

    assert tags_of(ada) == tags
    assert (sent()[-1] == "Thank you! We will call you tomorrow.") == (tags == [])
    assert statuses() == [("completed", None)]


def test_13_a_coupon_is_chosen_and_a_sale_spares_the_reminder(shop: Api, ada: dict[str, Any]) -> None:
    automation_id = install(shop, 13)
    bob = shop.contact(email="bob@example.com", phone="+4930123457")
    for contact in (ada, bob):
        shop.done(shop.post(f"contacts/{contact['id']}/tags", {"name": "subscriber"}))
    go_on(shop)
    shop.sale(bob["id"])

    go_on(shop, pass_time=True)

    [arm] = [tag.removeprefix("coupon-") for tag in tags_of(ada) if tag.startswith("coupon-")]
    assert sent()[-1] == f"Today is the last day of {arm.upper()}."
    assert len(sent()) == 3
    assert sorted(statuses()) == [("cancelled", "exit"), ("completed", None)]
    counts = shop.get(f"automations/{automation_id}/counts").get_json()["data"]
    assert (counts["goals"], sum(counts["steps"]["coupon"]["arms"].values())) == (1, 2)


@pytest.mark.parametrize(("reply", "outcome"), [("Blue", "answered"), (None, "no answer")])
def test_14_the_caller_gets_the_answer(shop: Api, ada: dict[str, Any], reply: str | None, outcome: str) -> None:
    start(shop, 14, ada, question="Which colour?", callback="https://flows.example/17")
    assert sent() == ["Which colour?"]

    if reply is None:
        go_on(shop, pass_time=True)
    else:
        write(shop, ada, reply)

    [request] = all_of("SELECT request FROM run_requests")
    [run] = Run.select()
    assert request["address"] == "https://flows.example/17"
    assert json.loads(request["body"]) == {"run": run.id, "answer": reply or "", "outcome": outcome}


@pytest.mark.parametrize(
    ("score", "last", "tags"),
    [
        ("9", "Thank you! Would you tell others? https://shop.example/review", []),
        ("7", "Thank you!", []),
        ("0", "We are sorry. A colleague will write to you.", ["unhappy"]),
    ],
)
def test_15_the_score_decides(shop: Api, ada: dict[str, Any], score: str, last: str, tags: list[str]) -> None:
    member_id = make_member(shop.workspace_id)
    publish(shop, json.loads(re.sub(rb"mem_\w+", member_id.encode(), json.dumps(recipe(15)))))
    shop.sale(ada["id"])
    go_on(shop)
    go_on(shop, pass_time=True)

    write(shop, ada, score)

    assert (sent()[-1], tags_of(ada)) == (last, tags)
    assert (one("SELECT assignee_id FROM conversations") == member_id) is bool(tags)
    assert Contact.get_by_id(ada["id"]).custom_fields == {"recommends": score}


def test_16_an_order_is_confirmed_line_by_line(shop: Api, ada: dict[str, Any]) -> None:
    items = [{"sku": "hat", "name": "Hat", "count": 2}, {"sku": "tie", "name": "Tie", "count": 1}]

    start(shop, 16, ada, items=items)

    assert tags_of(ada) == ["bought-hat", "bought-tie"]
    assert sent() == ["We pack for you:\n2 x Hat\n1 x Tie\n"]


@pytest.mark.parametrize(("hour", "texts"), [(23, ["We are back at 8 and will answer then."]), (11, [])])
def test_17_only_at_night_somebody_is_told_to_wait(shop: Api, ada: dict[str, Any], hour: int, texts: list[str]) -> None:
    install(shop, 17)
    berlin = datetime(2026, 1, 10, hour - 1, 30, tzinfo=UTC)

    with clock.moved_by(seconds=(berlin - clock.now()).total_seconds()):
        write(shop, ada, "Hello?", "Anybody?")

    assert sent() == texts


@pytest.mark.parametrize(
    ("reply", "locale", "last"),
    [
        ("DE", "de", "Alles klar, wir schreiben Deutsch."),
        ("auf Deutsch bitte", "de", "Alles klar, wir schreiben Deutsch."),
        ("English", "en", "Great, we write English."),
        ("whatever", None, "English or Deutsch?"),
    ],
)
def test_18_the_language_is_asked_for_once(
    shop: Api, ada: dict[str, Any], reply: str, locale: str | None, last: str
) -> None:
    install(shop, 18)

    write(shop, ada, "Hi", reply, "Hello again")

    assert Contact.get_by_id(ada["id"]).locale == locale
    assert sent()[-1] == last
    assert len(statuses()) == 1


@pytest.mark.parametrize("is_taken", [False, True])
def test_19_what_nobody_takes_goes_to_the_person_on_duty(shop: Api, ada: dict[str, Any], is_taken: bool) -> None:
    member_id = make_member(shop.workspace_id)
    publish(shop, json.loads(re.sub(rb"mem_\w+", member_id.encode(), json.dumps(recipe(19)))))
    write(shop, ada, "Hello?")
    if is_taken:
        assign(shop.workspace_id, ada["id"], make_member(shop.workspace_id))

    go_on(shop, pass_time=True)

    assert (one("SELECT assignee_id FROM conversations") == member_id) is not is_taken
    assert len(sent()) == (0 if is_taken else 1)


def test_20_a_parcel_is_announced_before_it_arrives_and_not_after(shop: Api, ada: dict[str, Any]) -> None:
    start(shop, 20, ada, parcel="17", arrives_at="2099-11-21T16:00:00Z")
    assert one("SELECT resume_at FROM runs") == datetime(2099, 11, 21, 14, tzinfo=UTC)
    go_on(shop, pass_time=True)
    assert sent() == ["Your parcel 17 arrives at 16:00."]

    start(shop, 20, ada, parcel="18", arrives_at="2020-11-21T16:00:00Z")

    assert len(sent()) == 1
    assert statuses() == [("completed", None)] * 2


@pytest.mark.parametrize(
    ("buys", "answer"),
    [(True, "Thank you for your order of 19.90 EUR!"), (False, "Your code TEN is good for four more days.")],
)
def test_21_only_those_who_have_not_bought_are_reminded(
    shop: Api, ada: dict[str, Any], buys: bool, answer: str
) -> None:
    install(shop, 21)
    shop.done(shop.post(f"contacts/{ada['id']}/tags", {"name": "coupon"}))
    go_on(shop)
    assert sent() == ["10 % off your next order, with the code TEN."]

    if buys:
        shop.done(shop.post("sales", {"contact_id": ada["id"], "amount": "19.90", "currency": "EUR"}))
    go_on(shop, pass_time=not buys)

    assert sent()[1:] == [answer]
    assert statuses() == [("completed", None)]


@pytest.mark.parametrize(
    ("tags", "texts"),
    [
        (["customer"], ["Soon it is your birthday, Ada! With BIRTHDAY you get 20 % off this week."]),
        ([], []),
    ],
)
def test_22_customers_get_a_voucher_before_their_birthday(shop: Api, tags: list[str], texts: list[str]) -> None:
    install(shop, 22)
    fields = {"first_name": "Ada", "timezone": "Europe/Berlin", "custom_fields": {"birthday": "1992-07-21"}}
    shop.contact(email="ada@example.com", phone="+4930123456", tags=tags, **fields)
    [at] = all_of("SELECT at FROM waiting_starts")
    assert f"{at.astimezone(UTC):%m-%d %H:%M}" == "07-18 07:00"

    rows("UPDATE waiting_starts SET at = at - interval '1 year' RETURNING 1")
    due_starts.start_some()
    go_on(shop)

    assert sent() == texts


@pytest.mark.parametrize(
    ("said", "button_id", "last", "labels"),
    [
        ("Opening hours", "hours", "We are open from 9 to 18, Monday to Saturday.", []),
        ("MY ORDER", None, "A colleague is with you in a moment.", ["order"]),
        ("3", None, "A colleague is with you in a moment.", ["return"]),
        ("My parcel is late", None, "Please press a button, or write its number.", []),
    ],
)
def test_23_a_topic_is_picked_from_a_menu(
    shop: Api, ada: dict[str, Any], said: str, button_id: str | None, last: str, labels: list[str]
) -> None:
    install(shop, 23)
    write(shop, ada, "Hi")

    receive(shop.workspace_id, ada["id"], one("SELECT id FROM channels"), said, button_id)
    go_on(shop)

    assert (sent()[-1], one("SELECT labels FROM conversations")) == (last, labels)


@pytest.mark.parametrize(
    ("days", "is_written_to", "said"),
    [
        (61, False, ["We have not seen you for a while. May we show you what is new?"]),
        (59, False, []),
        (61, True, ["Hello"]),
    ],
)
def test_24_those_who_have_not_bought_for_long_are_asked(
    shop: Api, ada: dict[str, Any], days: int, is_written_to: bool, said: list[str]
) -> None:
    text = FURTHER.read_text()
    body = json.loads(re.findall(r"POST …/segments\n(.*?)```", text, re.DOTALL)[0])
    segment_id = shop.done(shop.post("segments", body))["resource"]["id"]
    found = recipe(24)
    found["definition"]["triggers"][1]["segment_id"] = segment_id
    publish(shop, found)
    bought_at = json.timestamp(clock.now() - timedelta(days=days))
    sale = {"contact_id": ada["id"], "amount": "19.90", "currency": "EUR", "occurred_at": bought_at}
    shop.done(shop.post("sales", sale))
    go_on(shop)
    assert Contact.get_by_id(ada["id"]).custom_fields["last_bought_at"] == bought_at
    if is_written_to:
        shop.done(shop.post("messages", {"contact_id": ada["id"], "text": "Hello"}))
        rows("UPDATE messages SET sent_at = now() RETURNING 1")

    rows("UPDATE schedules SET next_at = now() RETURNING 1")
    schedules.start_some()
    go_on(shop)
    assert sent() == said

    if said and not is_written_to:
        receive(shop.workspace_id, ada["id"], one("SELECT id FROM channels"), "Yes, please", "yes")
        go_on(shop)
        assert tags_of(ada) == ["interested"]
