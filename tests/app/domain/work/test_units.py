"""Units of work: a batch costs as much as one, what fails fails alone, and no side waits for another or undoes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from structlog.testing import capture_logs

from app import database
from app.database import transaction
from app.domain import writes
from app.domain.contacts import bookings, contacts, sales
from app.domain.triggers import batches
from app.domain.work.changes import Change, Effect
from app.domain.work.events import Cause
from app.domain.work.units import Busy, Unit
from app.errors import Conflict
from app.lib import ids
from app.models import contacts as models
from app.models import sets
from app.models.contacts import Contact
from app.models.jobs import Job
from tests.cast import Api, accept, all_of, apply, elsewhere, event_bodies, event_kinds, in_threads, one, until, working


@pytest.fixture
def workspace_id(api: Api) -> str:
    return api.workspace_id


def upsert(workspace_id: str, **fields: Any) -> Job:
    return accept(workspace_id, "contacts.upsert", fields)


def statuses() -> list[str]:
    return all_of("SELECT status FROM jobs ORDER BY position")


def task(
    workspace_id: str, verb: Callable[[Change], Effect], payload: Mapping[str, Any], contact_id: str | None = None
) -> Callable[[Unit], Effect]:
    """What a run of an automation does with a contact."""
    change = partial(Change, workspace_id, payload, contact_id, "run", None, Cause(None, "run-1"))
    return lambda unit: verb(change(unit))


def run_now(
    workspace_id: str, verb: Callable[[Change], Effect], payload: Mapping[str, Any], **options: Any
) -> list[Any]:
    """Does it beside the workspace's writes, in a unit of its own. Nothing if another transaction is in the way."""
    needs = contacts.needs(workspace_id, payload, options.get("contact_id"))
    with transaction():
        return batches.run([task(workspace_id, verb, payload, **options)], needs)


def run(workspace_id: str, verb: Callable[[Change], Effect], payload: Mapping[str, Any], **options: Any) -> Any:
    """The same, tried until nothing is in the way."""
    [result] = until(lambda: run_now(workspace_id, verb, payload, **options), seconds=60)
    if isinstance(result, Exception):
        raise result
    return result


# What a batch costs


def cost_of_a_batch(api: Api, statements: list[str], accept_all: Callable[[int], None], size: int) -> int:
    accept_all(size)
    statements.clear()
    writes.work(api.workspace_id)
    cost = len(statements)
    assert set(statuses()) == {"succeeded"}
    return cost


def test_a_batch_of_forty_costs_as_many_statements_as_one_of_two(
    api: Api, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "COUNTED_EVERY", 1_000_000)
    api.endpoint()
    known = [api.contact(external_id=f"known-{number}")["id"] for number in range(50)]
    booked = [api.booking(contact_id)["id"] for contact_id in known]

    def accept_all(size: int) -> None:
        for number in range(size // 2):
            upsert(api.workspace_id, external_id=ids.new("x"), email=f"{ids.new('x')}@example.com", tags=["a", "b"])
            upsert(api.workspace_id, external_id=f"known-{number}", first_name=ids.new("x"))

    def accept_more(size: int) -> None:
        for number in range(size // 2):
            sale = {"contact_id": known[number], "amount": "1.00", "currency": "EUR", "reference": ids.new("x")}
            accept(api.workspace_id, "sales.create", sale | {"occurred_at": "2026-11-20T00:00:00Z"}, ids.new("sal"))
            accept(api.workspace_id, "bookings.cancel", {}, booked.pop())

    for batch in (accept_all, accept_more):
        costs = [cost_of_a_batch(api, statements, batch, size) for size in (2, 40)]
        assert costs[0] == costs[1] < 25, statements


# What fails


def test_a_task_that_fails_leaves_nothing_for_those_behind_it(workspace_id: str) -> None:
    def fail(unit: Unit) -> None:
        task(workspace_id, contacts.upsert, {"email": "ada@example.com", "tags": ["vip"]})(unit)
        raise RuntimeError("broken")

    again = task(workspace_id, contacts.upsert, {"email": "ADA@example.com"})
    with transaction():
        results: list[Any] = batches.run([fail, again, again], contacts.needs(workspace_id, {"email": "a@b.c"}, None))

    assert [getattr(result, "kind", None) for result in results] == [None, "made", "changed"]
    assert all_of("SELECT tags FROM contacts") == [[]]
    assert event_kinds(workspace_id) == ["contact.created"]


def test_writes_find_what_those_before_them_in_the_batch_made_changed_and_gave_up(workspace_id: str) -> None:
    upsert(workspace_id, external_id="first", email="ada@example.com")
    apply(workspace_id)
    first = one("SELECT id FROM contacts")

    accept(workspace_id, "contacts.update", {"email": "eda@example.com"}, first)
    upsert(workspace_id, external_id="second", email="Ada@example.com")
    upsert(workspace_id, email="EDA@example.com", first_name="Eda")
    upsert(workspace_id, external_id="second", first_name="Ada")
    apply(workspace_id)

    assert set(statuses()) == {"succeeded"}
    rows = database.rows("SELECT external_id, email, first_name FROM contacts ORDER BY external_id")
    assert rows == [("first", "EDA@example.com", "Eda"), ("second", "Ada@example.com", "Ada")]


def test_a_batch_that_the_database_refuses_is_done_one_by_one(workspace_id: str) -> None:
    """Two contacts exchange a value of which each must be unique at every moment."""
    for name in ("a", "b"):
        upsert(workspace_id, external_id=name, phone=f"+49301234{ord(name)}")
    apply(workspace_id)
    [a, b] = all_of("SELECT id FROM contacts ORDER BY external_id")

    for contact_id, phone in ((a, "+4930999"), (b, "+4930123497"), (a, "+4930123498")):
        accept(workspace_id, "contacts.update", {"phone": phone}, contact_id)
    with capture_logs() as lines:
        apply(workspace_id)

    assert set(statuses()) == {"succeeded"}
    assert all_of("SELECT phone FROM contacts ORDER BY external_id") == ["+4930123498", "+4930123497"]
    assert event_kinds(workspace_id) == ["contact.created"] * 2 + ["contact.updated"] * 3
    assert "unit.redone" in [line["event"] for line in lines]


def test_a_write_that_breaks_a_rule_of_the_database_fails_alone(workspace_id: str) -> None:
    contact_id = run(workspace_id, contacts.upsert, {"email": "ada@example.com"}).resource_id
    times = {"starts_at": "2026-11-20T10:00:00Z", "ends_at": "2026-11-20T09:00:00Z"}
    upsert(workspace_id, external_id="before")
    accept(workspace_id, "bookings.create", {"contact_id": contact_id, "title": "Cut", **times}, ids.new("bkg"))
    upsert(workspace_id, external_id="behind")

    apply(workspace_id)

    assert statuses() == ["succeeded", "failed", "succeeded"]
    assert one("SELECT problem->>'status' FROM jobs WHERE status = 'failed'") == "500"
    assert "booking.created" not in event_kinds(workspace_id)


def test_what_was_not_foreseen_is_read_when_it_is_needed(workspace_id: str) -> None:
    contact_id = run(workspace_id, contacts.upsert, {"email": "ada@example.com"}).resource_id

    with transaction():
        [result] = batches.run([task(workspace_id, contacts.add_tag, {"name": "vip"}, contact_id)], [])

    assert isinstance(result, Effect)
    assert all_of("SELECT tags FROM contacts") == [["vip"]]


def test_a_unit_may_hold_contacts_of_several_workspaces(api: Api, others: Api) -> None:
    payload = {"email": "ada@example.com", "tags": ["vip"]}
    tasks = [task(each.workspace_id, contacts.upsert, payload) for each in (api, others)]
    needs = [key for each in (api, others) for key in contacts.needs(each.workspace_id, payload, None)]

    with transaction():
        assert [result.kind for result in batches.run(tasks, needs)] == ["made", "made"]  # type: ignore[union-attr]

    for each in (api, others):
        assert event_kinds(each.workspace_id) == ["contact.created", "tag.added"]


# What another transaction holds


def test_a_batch_ends_before_the_job_whose_contact_is_held_and_goes_on_when_it_is_free(workspace_id: str) -> None:
    upsert(workspace_id, external_id="held")
    apply(workspace_id)
    upsert(workspace_id, external_id="before")
    upsert(workspace_id, external_id="held", first_name="Ada")
    upsert(workspace_id, external_id="behind")

    hold = "SELECT FROM contacts WHERE external_id = 'held' FOR NO KEY UPDATE"
    with elsewhere(partial(database.rows, hold)):
        for _ in range(20):
            writes.work(workspace_id)
        assert statuses() == ["succeeded", "succeeded", "running", "running"]
        assert all_of("SELECT deaths FROM jobs") == [0] * 4
    apply(workspace_id)

    assert statuses() == ["succeeded"] * 4
    assert all_of("SELECT external_id FROM contacts ORDER BY id") == ["held", "before", "behind"]


def test_an_import_stops_at_a_line_whose_contact_is_held_and_goes_on_when_it_is_free(api: Api) -> None:
    api.contact(external_id="held")
    lines = "\n".join(f'{{"external_id": "{name}", "tags": ["vip"]}}' for name in ("before", "held", "behind"))
    accepted = api.post("contacts/import", data=lines, content_type="application/x-ndjson")

    hold = "SELECT FROM contacts WHERE external_id = 'held' FOR NO KEY UPDATE"
    with elsewhere(partial(database.rows, hold)):
        for _ in range(20):
            writes.work(api.workspace_id)
        assert database.rows("SELECT done, failed FROM imports") == [(1, 0)]
    apply(api.workspace_id)

    assert api.job(accepted)["status"] == "succeeded"
    assert database.rows("SELECT done, failed FROM imports") == [(3, 0)]
    assert all_of("SELECT external_id FROM contacts WHERE tags = '{vip}' ORDER BY id") == ["held", "before", "behind"]


@pytest.mark.parametrize("theirs", [{"email": "ADA@example.com"}, {"external_id": "x", "email": "ada@example.com"}])
def test_who_finds_another_making_the_contact_waits_for_the_outcome(workspace_id: str, theirs: dict[str, Any]) -> None:
    ours = {"email": "ada@example.com", "tags": ["ours"]}

    def make() -> None:
        assert batches.run([task(workspace_id, contacts.upsert, theirs)], contacts.needs(workspace_id, theirs, None))

    with elsewhere(make):
        assert run_now(workspace_id, contacts.upsert, ours) == []
    effect = run(workspace_id, contacts.upsert, ours)

    assert effect.kind == "changed"
    assert all_of("SELECT tags FROM contacts") == [["ours"]]


@pytest.mark.parametrize("ours", [{"external_id": "x"}, {"external_id": "x", "phone": "+4930123456"}], ids=str)
def test_who_needs_an_identifier_that_another_is_linking_waits_for_the_outcome(
    workspace_id: str, ours: dict[str, Any]
) -> None:
    contact_id = run(workspace_id, contacts.upsert, {"email": "ada@example.com"}).resource_id
    theirs = {"external_id": "x", "email": "ada@example.com"}

    def link() -> None:
        assert batches.run([task(workspace_id, contacts.upsert, theirs)], contacts.needs(workspace_id, theirs, None))

    with elsewhere(link):
        assert run_now(workspace_id, contacts.upsert, ours) == []
    effect = run(workspace_id, contacts.upsert, ours)

    assert (effect.kind, effect.resource_id) == ("changed", contact_id)
    assert all_of("SELECT external_id FROM contacts") == ["x"]


def test_who_would_link_an_identifier_that_another_is_taking_waits_and_fails(workspace_id: str) -> None:
    contact_id = run(workspace_id, contacts.upsert, {"email": "ada@example.com"}).resource_id
    theirs, ours = {"external_id": "x"}, {"external_id": "x", "email": "ada@example.com"}

    def make() -> None:
        assert batches.run([task(workspace_id, contacts.upsert, theirs)], contacts.needs(workspace_id, theirs, None))

    with elsewhere(make):
        assert run_now(workspace_id, contacts.upsert, ours) == []
    with pytest.raises(Conflict) as refused:
        run(workspace_id, contacts.upsert, ours)

    assert refused.value.facts == {"conflicting_field": "email", "conflicting_contact_id": contact_id}


def test_what_another_did_to_a_contact_in_the_last_instant_is_seen(
    workspace_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look that finds nothing and the reservation, another makes the contact."""
    real = sets.reserve

    def reserve_late(keys: Any) -> Any:
        monkeypatch.setattr(sets, "reserve", real)
        assert in_threads([partial(run, workspace_id, contacts.upsert, {"email": "ada@example.com"})])[0].kind == "made"
        return real(keys)

    monkeypatch.setattr(sets, "reserve", reserve_late)
    effect = run(workspace_id, contacts.upsert, {"email": "ada@example.com", "first_name": "Ada"})

    assert effect.kind == "changed"
    assert event_kinds(workspace_id) == ["contact.created", "contact.updated"]


def test_of_many_creators_of_one_contact_one_makes_it(workspace_id: str) -> None:
    payload = {"external_id": "one", "email": "ada@example.com"}

    effects = in_threads([partial(run, workspace_id, contacts.upsert, payload)] * 8)

    assert sorted(effect.kind for effect in effects) == ["changed"] * 7 + ["made"]
    assert one("SELECT count(*) FROM contacts") == 1


def test_many_who_know_one_person_by_different_identifiers_make_one_contact(workspace_id: str) -> None:
    """A newsletter, a shop, a till and the workspace's own writes, beside each other."""
    known: list[dict[str, Any]] = [
        {"email": "ada@example.com"},
        {"external_id": "x", "email": "ADA@example.com"},
        {"external_id": "x", "email": "ada@example.com", "phone": "+4930123456"},
        {"email": "ada@example.com", "phone": "+4930123456"},
    ]
    for number, each in enumerate(known * 3):
        upsert(workspace_id, **each, tags=[f"writes-{number}"])

    with working():
        outcomes = in_threads([partial(run, workspace_id, contacts.upsert, each) for each in known * 3])
        until(lambda: set(statuses()) == {"succeeded"}, seconds=60)

    [(contact_id, external_id, email, phone, tags)] = database.rows(
        "SELECT id, external_id, lower(email), phone, tags FROM contacts"
    )
    assert {outcome.resource_id for outcome in outcomes} == {contact_id}
    assert (external_id, email, phone) == ("x", "ada@example.com", "+4930123456")
    assert tags == sorted(f"writes-{number}" for number in range(12))
    follow(workspace_id, contact_id)


def test_of_many_who_would_link_different_customers_to_one_address_one_does(workspace_id: str) -> None:
    contact_id = run(workspace_id, contacts.upsert, {"email": "ada@example.com"}).resource_id
    given = [{"external_id": f"c-{number}", "email": "ada@example.com"} for number in range(8)]

    outcomes = in_threads([partial(run, workspace_id, contacts.upsert, each) for each in given])

    done = [outcome.resource_id for outcome in outcomes if isinstance(outcome, Effect)]
    refused = [outcome.facts for outcome in outcomes if isinstance(outcome, Conflict)]
    assert (done, len(refused)) == ([contact_id], 7)
    assert {tuple(facts.items()) for facts in refused} == {
        (("conflicting_field", "external_id"), ("conflicting_contact_id", contact_id))
    }


def test_of_many_sales_with_one_reference_beside_each_other_one_is_recorded(workspace_id: str) -> None:
    contact_id = run(workspace_id, contacts.upsert, {"email": "ada@example.com"}).resource_id
    payload = {"contact_id": contact_id, "amount": "1.00", "currency": "EUR", "reference": "order-1"}
    payload["occurred_at"] = "2026-11-20T00:00:00Z"

    outcomes = in_threads([lambda: run(workspace_id, sales.create, payload, contact_id=ids.new("sal"))] * 5)

    assert sum(isinstance(outcome, Effect) for outcome in outcomes) == 1
    assert one("SELECT count(*) FROM sales") == 1


def test_a_booking_that_is_held_is_cancelled_when_it_is_free(workspace_id: str) -> None:
    contact_id = run(workspace_id, contacts.upsert, {"email": "ada@example.com"}).resource_id
    times = {"starts_at": "2026-11-20T10:00:00Z", "ends_at": "2026-11-20T11:00:00Z"}
    payload = {"contact_id": contact_id, "title": "Cut", **times}
    booking_id = run(workspace_id, bookings.create, payload, contact_id=ids.new("bkg")).resource_id

    with elsewhere(partial(database.rows, "SELECT FROM bookings FOR NO KEY UPDATE")):
        assert run_now(workspace_id, bookings.cancel, {}, contact_id=booking_id) == []
    run(workspace_id, bookings.cancel, {}, contact_id=booking_id)

    assert event_kinds(workspace_id) == ["contact.created", "booking.created", "booking.cancelled"]


# Segments


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A segment is full with five contacts, and counted before each, and all are found by index."""
    monkeypatch.setattr(models, "LOOKED_AT", 0)
    monkeypatch.setattr(models, "SEGMENT_SIZE", 5)
    monkeypatch.setattr(models, "COUNTED_EVERY", 1)


def misplaced() -> list[str]:
    """The contacts that are of another segment than their identifier says."""
    return all_of(
        """
        SELECT id FROM contacts WHERE segment <> coalesce((
            SELECT max(number) FROM contact_segments
            WHERE workspace_id = contacts.workspace_id AND from_id <= contacts.id), 0)
        """
    )


@pytest.mark.usefixtures("small")
def test_no_segment_opens_while_another_makes_contacts_and_nobody_makes_any_while_one_opens(workspace_id: str) -> None:
    def make(number: int) -> list[Any]:
        return run_now(workspace_id, contacts.upsert, {"external_id": f"c-{number}"})

    for number in range(5):
        assert make(number)

    with elsewhere(lambda: sets.reserve([sets.key(Contact, workspace_id, "external_id", "other")])):
        assert make(5)
        assert one("SELECT count(*) FROM contact_segments") == 0
    with elsewhere(lambda: make(6)):
        assert make(7) == []
    assert make(7)

    assert one("SELECT count(*) FROM contact_segments") == 1
    assert all_of("SELECT segment FROM contacts ORDER BY id") == [0] * 6 + [1] * 2
    assert misplaced() == []


# Both sides


def found_by_search(workspace_id: str) -> list[str]:
    """The identifiers of the contacts on all pages of a search."""
    found: list[str] = []
    while page := Contact.newest(workspace_id, {"q": "@example.com"}, found[-1] if found else None, 7):
        found += [contact.id for contact in page]
    return found


@pytest.mark.usefixtures("small")
def test_writes_and_runs_change_and_make_the_same_contacts_beside_each_other(workspace_id: str) -> None:
    """Each side adds tags of its own to forty contacts, in its own order. The first to come makes the contact."""
    emails = [f"c-{number}@example.com" for number in range(40)]
    for email in emails[:12]:  # two segments, however few transactions make the others
        run(workspace_id, contacts.upsert, {"email": email})
    for place, email in enumerate(emails):
        upsert(workspace_id, email=email, tags=["writes"], first_name=str(place))

    def side(name: str, step: int) -> None:
        for place in range(40):
            email = emails[place * step % 40]
            contact_id = run(workspace_id, contacts.upsert, {"email": email.upper(), "tags": [name]}).resource_id
            run(workspace_id, contacts.add_tag, {"name": f"{name}-again"}, contact_id=contact_id)

    before = one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    with working():
        outcomes = in_threads([partial(side, "runs", 3), partial(side, "chats", 7), partial(side, "more", 1)])
        until(lambda: set(statuses()) == {"succeeded"}, seconds=60)

    assert outcomes == [None] * 3
    assert one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == before
    assert one("SELECT count(*) FROM contacts") == 40
    names = ["chats", "chats-again", "more", "more-again", "runs", "runs-again", "writes"]
    assert all_of("SELECT DISTINCT tags FROM contacts") == [names]
    assert misplaced() == []
    assert one("SELECT count(*) FROM contact_segments") > 1
    assert found_by_search(workspace_id) == all_of("SELECT id FROM contacts ORDER BY id DESC")
    for contact_id in all_of("SELECT id FROM contacts"):
        follow(workspace_id, contact_id)


def follow(workspace_id: str, contact_id: str) -> None:
    """The events of a contact tell one story: each says what the one before it left, and what became of that."""
    told = [each for each in event_bodies(workspace_id) if each["data"]["contact"]["id"] == contact_id]
    assert [each["kind"] for each in told].count("contact.created") == 1
    assert told[0]["kind"] == "contact.created"
    for before, now in pairwise(told):
        was, is_now = before["data"]["contact"], now["data"]["contact"]
        assert is_now["updated_at"] >= was["updated_at"]
        assert set(is_now["tags"]) >= set(was["tags"])
        if now["kind"] == "tag.added" and is_now != was:
            assert set(is_now["tags"]) == {*was["tags"], now["data"]["tag"]}
        assert was["first_name"] in (None, is_now["first_name"])
    stored = database.rows("SELECT tags, first_name FROM contacts WHERE id = %s", (contact_id,))
    assert stored == [(told[-1]["data"]["contact"]["tags"], told[-1]["data"]["contact"]["first_name"])]


# Tasks in any order, and what is read once the contacts are locked


@pytest.mark.parametrize("is_redone", [False, True])
def test_without_an_order_only_what_is_held_has_no_effect(workspace_id: str, is_redone: bool) -> None:
    for name in ("before", "held", "behind"):
        upsert(workspace_id, external_id=name)
    apply(workspace_id)
    contact_ids = all_of("SELECT id FROM contacts ORDER BY id")
    tasks = [task(workspace_id, contacts.add_tag, {"name": "vip"}, contact_id) for contact_id in contact_ids]
    needs = [sets.key(Contact, workspace_id, "id", contact_id) for contact_id in contact_ids]
    run_all = partial(batches.run_each, tasks) if is_redone else partial(batches.run, tasks, needs)

    with (
        elsewhere(partial(database.rows, "SELECT FROM contacts WHERE external_id = 'held' FOR NO KEY UPDATE")),
        transaction(),
    ):
        results: list[Any] = run_all(in_order=False)

    assert [type(result) for result in results] == [Effect, Busy, Effect]
    tagged = "SELECT external_id FROM contacts WHERE tags = '{vip}' ORDER BY id"
    assert all_of(tagged) == ["before", "behind"]


def test_what_depends_on_locked_rows_is_read_at_once(workspace_id: str, statements: list[str]) -> None:
    for number in range(10):
        upsert(workspace_id, external_id=str(number), email=f"{number}@example.com")
    apply(workspace_id)
    contact_ids = all_of("SELECT id FROM contacts ORDER BY id")
    phones = [f"+4930{number}" for number in range(10)]
    needs = [sets.key(Contact, workspace_id, "id", contact_id) for contact_id in contact_ids]

    def behind(unit: Unit) -> None:
        emails = [unit.get(Contact, workspace_id, "id", contact_id).email for contact_id in contact_ids]
        known = [sets.key(Contact, workspace_id, "email", email) for email in emails]
        unit.read([*known, *(sets.key(Contact, workspace_id, "phone", phone) for phone in phones)])

    def look(phone: str, unit: Unit) -> Any:
        return unit.get(Contact, workspace_id, "phone", phone)

    statements.clear()
    with transaction():
        found = batches.run([partial(look, phone) for phone in phones], needs, then=behind)

    assert found == [None] * 10
    assert len([each for each in statements if "sought" in each]) == 1 + 3  # look, reserve, look again


def test_a_unit_reads_nothing_twice(workspace_id: str, statements: list[str]) -> None:
    upsert(workspace_id, external_id="x")
    apply(workspace_id)
    key = sets.key(Contact, workspace_id, "external_id", "x")

    with transaction():
        unit = Unit()
        unit.read([key])
        statements.clear()
        unit.read([key, sets.key(Contact, workspace_id, "id", unit.get(*key).id)])

    assert statements == []
