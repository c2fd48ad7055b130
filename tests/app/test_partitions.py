from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg2
import pytest
from flask.testing import FlaskClient
from structlog.testing import capture_logs

from app import database, migrations, partitions, sql
from app.config import settings
from app.database import rows
from app.lib import ids
from app.models.base import page_before
from app.models.deliveries import Attempt, Delivery
from app.models.events import Event
from app.models.jobs import IdempotencyKey, Job
from app.partitions import TABLES, Piece
from tests.cast import Api, all_of, found, in_threads, one
from tests.conftest import Servers

DAY = timedelta(days=1)
NOW = datetime(2026, 11, 21, 15, 30, tzinfo=UTC)
EVENTS, ATTEMPTS, DELIVERIES, JOBS, RUN_STEPS = TABLES
KEY = UUID(int=7)

INSERT = {
    "events": "INSERT INTO events (id, workspace_id, kind, trace_id, body, created_at)"
    " VALUES (%s, 'ws_1', 'contact.created', 't', '{}', now())",
    "deliveries": "INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, status, due_at)"
    " VALUES (%s, 'ws_1', 'evt_1', 'whe_1', 'contact.created', 'delivered', NULL)",
    "attempts": "INSERT INTO attempts (delivery_id, number, at, duration_ms) VALUES (%s, 1, now(), 5)",
    "jobs": "INSERT INTO jobs (id, workspace_id, kind, status, trace_id, due_at)"
    " VALUES (%s, 'ws_1', 'contacts.upsert', 'succeeded', 't', NULL)",
    "run_steps": "INSERT INTO run_steps (id, workspace_id, run_id, number, step, kind, status, at, detail)"
    " VALUES (%s, 'ws_1', 'run_1', 1, 'a', 'wait', 'succeeded', now(), '{}')",
}
EVERY_TABLE = pytest.mark.parametrize("each", TABLES, ids=lambda each: each.table)


@pytest.fixture(scope="module")
def uncut_template(servers: Servers) -> str:
    """The name of a migrated database whose tables have only their default partitions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "make_ahead", lambda: 0)
        database.connect_to(servers.new_database("uncut"))
        migrations.upgrade()
    database.database.close()
    database.connect_to(settings().database_url)
    return "uncut"


@pytest.fixture
def uncut(servers: Servers, uncut_template: str) -> Iterator[str]:
    """The address of such a database, which this process uses meanwhile."""
    url = servers.new_database(ids.new("uncut"), uncut_template)
    database.connect_to(url)
    yield url
    database.database.close()
    database.connect_to(settings().database_url)


def id_at(prefix: str, at: datetime) -> str:
    return ids.bound(prefix, at)[:-16] + ids.new(prefix)[-16:]


def add(each: partitions.Partitioned, at: datetime) -> str:
    """A row that was made then."""
    identifier = id_at(each.prefix, at)
    rows(INSERT[each.table], (identifier,))
    return identifier


def homes(each: partitions.Partitioned) -> dict[str, str]:
    """Which partition each row is in."""
    return dict(rows(f"SELECT {each.key}, tableoid::regclass::text FROM {each.table}"))


def names(each: partitions.Partitioned) -> list[str]:
    return [piece.name for piece in partitions.existing(each)]


# Made ahead


def test_partitions_are_made_for_the_present_and_the_near_future(uncut: str) -> None:
    assert partitions.make_ahead(NOW) == 8 + 3 + 3 + 3 + 3

    assert names(EVENTS) == [f"events_202611{day}" for day in range(21, 29)]
    assert names(DELIVERIES) == ["deliveries_20261103", "deliveries_20261203", "deliveries_20270102"]
    assert names(JOBS) == ["jobs_20261103", "jobs_20261203", "jobs_20270102"]
    assert [(piece.low, piece.high) for piece in partitions.existing(ATTEMPTS)] == [
        (piece.low, piece.high) for piece in partitions.existing(DELIVERIES)
    ]


def test_they_follow_each_other_without_a_gap_as_time_goes(uncut: str) -> None:
    for hours in range(0, 24 * 30, 40):
        partitions.make_ahead(NOW + timedelta(hours=hours))

    for each in TABLES:
        pieces = partitions.existing(each)
        assert [piece.low for piece in pieces[1:]] == [piece.high for piece in pieces[:-1]]
        assert pieces[0].low <= ids.bound(each.prefix, NOW) < pieces[0].high


def test_what_is_there_is_not_made_again(uncut: str) -> None:
    partitions.make_ahead(NOW)

    assert partitions.make_ahead(NOW) == 0
    assert partitions.make_ahead(NOW + DAY) == 1


def test_a_database_that_was_migrated_has_its_partitions(one_day: None, bare: str, client: FlaskClient) -> None:
    migrations.upgrade()
    api = found(client, "Ours")
    api.endpoint()
    api.contact(email="ada@example.com")

    assert partitions.make_ahead() == 0
    for each in (EVENTS, DELIVERIES, JOBS):
        assert set(homes(each).values()) <= set(names(each))
        assert homes(each)


@EVERY_TABLE
def test_a_partition_has_every_index_of_its_table_once(uncut: str, each: partitions.Partitioned) -> None:
    partitions.make_ahead(NOW)

    def indexes(table: str) -> int:
        return int(one("SELECT count(*) FROM pg_indexes WHERE tablename = %s", table))

    assert {indexes(name) for name in names(each)} == {indexes(each.table)}


@EVERY_TABLE
def test_without_partitions_rows_are_taken_and_moved_when_one_is_made(uncut: str, each: partitions.Partitioned) -> None:
    present, coming, old = add(each, NOW), add(each, NOW + each.days * DAY), add(each, NOW - 40 * DAY)
    before = sorted(rows(f"SELECT * FROM {each.table}"))
    assert set(homes(each).values()) == {each.default}

    partitions.make_ahead(NOW)

    assert sorted(rows(f"SELECT * FROM {each.table}")) == before
    assert homes(each) == {present: names(each)[0], coming: names(each)[1], old: each.default}


def test_four_at_once_make_each_once(uncut: str, patient: None) -> None:
    made = in_threads([lambda: partitions.make_ahead(NOW)] * 4)

    assert sum(made) == 20
    assert partitions.make_ahead(NOW) == 0


def test_partitions_of_another_width_are_left_and_not_overlapped(uncut: str) -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    rows(
        "CREATE TABLE wide PARTITION OF events FOR VALUES FROM (%s) TO (%s)",
        (ids.bound("evt", at), ids.bound("evt", at + 3 * DAY)),
    )

    partitions.make_ahead(NOW)

    assert names(EVENTS) == ["wide", *(f"events_202611{day}" for day in range(24, 29))]


def test_it_gives_way_to_whoever_uses_the_table_and_the_rest_is_made(uncut: str) -> None:
    other = psycopg2.connect(uncut)
    other.cursor().execute("LOCK TABLE jobs IN ROW EXCLUSIVE MODE")

    with capture_logs() as lines:
        assert partitions.make_ahead(NOW) == 8 + 3 + 3 + 3
    other.rollback()  # a server notices a connection's end in its own time
    other.close()

    assert {line["name"] for line in lines if line["event"] == "partition.in_use"} == {
        "jobs_20261103",
        "jobs_20261203",
        "jobs_20270102",
    }
    assert all_of("SELECT relname FROM pg_class WHERE relname LIKE 'jobs_202%%'") == []
    assert partitions.make_ahead(NOW) == 3


def test_rows_are_written_and_found_while_partitions_are_made(uncut: str, patient: None) -> None:
    def write() -> None:
        for _ in range(200):
            identifier = add(JOBS, NOW)
            assert rows("SELECT 1 FROM jobs WHERE id = %s", (identifier,)), identifier

    results = in_threads([write, write, lambda: partitions.make_ahead(NOW)])

    assert results == [None, None, 20]
    assert one("SELECT count(*) FROM jobs") == 400
    assert one("SELECT count(*) FROM jobs_default") == 0


# Dropped


def made_since(days: int) -> None:
    """As it is where partitions were made for so many days."""
    for ago in range(days, -1, -7):
        partitions.make_ahead(NOW - ago * DAY)
    partitions.make_ahead(NOW)


@pytest.fixture
def only_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the events, whose many partitions take a while to make."""
    monkeypatch.setattr(partitions, "TABLES", (ATTEMPTS, DELIVERIES, JOBS, RUN_STEPS))


def test_events_go_when_bodies_are_old_and_the_rest_stays(uncut: str) -> None:
    made_since(35)
    gone = add(EVENTS, NOW.replace(hour=0, minute=0) - 30 * DAY - timedelta(seconds=1))
    kept = [add(EVENTS, NOW.replace(hour=0, minute=0) - 30 * DAY), add(EVENTS, NOW)]
    deliveries = [add(DELIVERIES, NOW - 90 * DAY), add(DELIVERIES, NOW)]
    jobs = [add(JOBS, NOW - 90 * DAY)]

    partitions.drop_expired(NOW)

    assert sorted(homes(EVENTS)) == sorted(kept)
    assert gone not in homes(EVENTS)
    assert sorted(homes(DELIVERIES)) == sorted(deliveries)
    assert sorted(homes(JOBS)) == sorted(jobs)
    assert names(EVENTS)[0] == "events_20261022"


def test_history_goes_when_all_of_its_partition_is_old(uncut: str, only_history: None) -> None:
    made_since(150)
    tables = (ATTEMPTS, DELIVERIES, JOBS, RUN_STEPS)
    old = {each.table: add(each, NOW - 140 * DAY) for each in tables}
    young = {each.table: add(each, NOW - 90 * DAY) for each in tables}

    partitions.drop_expired(NOW)

    for each in tables:
        assert old[each.table] not in homes(each)
        assert young[each.table] in homes(each)
    assert partitions.drop_expired(NOW) == 0


@EVERY_TABLE
def test_old_rows_of_the_default_partition_go_a_batch_at_a_time(
    uncut: str, each: partitions.Partitioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "BATCH", 2)
    monkeypatch.setattr(partitions, "MOST_BATCHES", 2)
    old = sorted(add(each, NOW - 91 * DAY + number * timedelta(minutes=1)) for number in range(5))
    young = add(each, NOW - 29 * DAY)

    assert partitions.drop_expired(NOW) == 0
    assert sorted(homes(each)) == [old[4], young]

    partitions.drop_expired(NOW)
    assert sorted(homes(each)) == [young]


def test_a_job_that_is_not_finished_keeps_its_partition(uncut: str, only_history: None) -> None:
    made_since(150)
    waiting, done = add(JOBS, NOW - 140 * DAY), add(JOBS, NOW - 140 * DAY)
    rows("UPDATE jobs SET due_at = now(), status = 'queued' WHERE id = %s", (waiting,))
    in_default = add(JOBS, NOW - 400 * DAY)
    rows("UPDATE jobs SET due_at = now() WHERE id = %s", (in_default,))

    with capture_logs() as lines:
        partitions.drop_expired(NOW)

    assert set(homes(JOBS)) == {waiting, done, in_default}
    [kept] = [line for line in lines if line["event"] == "partition.kept"]
    assert kept["name"] == homes(JOBS)[waiting]

    rows("UPDATE jobs SET due_at = NULL")
    partitions.drop_expired(NOW)
    assert homes(JOBS) == {}


def test_four_at_once_drop_each_once(uncut: str, patient: None) -> None:
    made_since(36)
    before = len(names(EVENTS))

    dropped = in_threads([lambda: partitions.drop_expired(NOW)] * 4)

    assert sum(dropped) == before - len(names(EVENTS)) == 6


def test_what_is_dropped_meanwhile_is_not_half_there(uncut: str, patient: None) -> None:
    made_since(60)
    dropped = threading.Event()
    seen: list[Piece] = []

    def look() -> None:
        while not dropped.is_set():
            seen.extend(partitions.existing(EVENTS))

    def drop() -> int:
        try:
            return partitions.drop_expired(NOW)
        finally:
            dropped.set()

    assert in_threads([look, look, look, drop]) == [None, None, None, 30]
    assert all(piece.low < piece.high for piece in seen)


def test_what_is_in_use_is_dropped_the_next_time(uncut: str) -> None:
    made_since(31)
    other = psycopg2.connect(uncut)
    other.cursor().execute("SELECT FROM events")

    assert partitions.drop_expired(NOW) == 0
    other.rollback()
    other.close()

    assert partitions.drop_expired(NOW) == 1


def test_passes_for_months_keep_what_they_should_in_few_partitions(uncut: str) -> None:
    made: dict[str, list[tuple[datetime, str]]] = {each.table: [] for each in TABLES}
    for days in range(130):
        at = NOW + days * DAY
        partitions.make_ahead(at)
        partitions.drop_expired(at)
        for each in TABLES:
            made[each.table].append((at, add(each, at)))

    for each in TABLES:
        held = homes(each)
        kept = getattr(settings(), each.retention) * DAY
        assert each.default not in held.values()
        assert all(identifier in held for then, identifier in made[each.table] if at - then <= kept)
        assert not any(
            identifier in held for then, identifier in made[each.table] if at - then > kept + each.days * DAY
        )
    assert len(names(EVENTS)) == 30 + 1 + 7
    assert {len(names(each)) for each in (DELIVERIES, JOBS, ATTEMPTS, RUN_STEPS)} == {3 + 1 + 2}


def test_the_clock_of_the_database_counts(uncut: str) -> None:
    before = datetime.now(UTC)
    partitions.make_ahead()

    assert Piece("", ids.bound("evt", before), "").low < partitions.existing(EVENTS)[0].high
    assert partitions.drop_expired() == 0


# What is left when bodies are gone


def drop_bodies(api: Api) -> None:
    """Everything of today grows old enough for its events to go."""
    partitions.drop_expired(datetime.now(UTC) + 32 * DAY)
    assert one("SELECT count(*) FROM events") == 0


@pytest.fixture
def with_bodies_gone(api: Api, patient: None) -> Iterator[Api]:
    api.endpoint()
    api.contact(email="ada@example.com")
    drop_bodies(api)
    yield api
    partitions.make_ahead()


def test_a_delivery_whose_body_is_gone_is_shown_without_it(with_bodies_gone: Api) -> None:
    delivery_id = one("SELECT id FROM deliveries LIMIT 1")

    shown = with_bodies_gone.get(f"webhooks/deliveries/{delivery_id}")

    assert shown.status_code == 200
    assert shown.json["data"]["body"] is None
    assert with_bodies_gone.get("webhooks/deliveries").json["data"][0]["id"] == delivery_id


def test_jobs_are_shown_when_the_events_of_their_time_are_gone(with_bodies_gone: Api) -> None:
    job_id = one("SELECT id FROM jobs WHERE kind = 'contacts.upsert'")

    assert with_bodies_gone.get(f"jobs/{job_id}").json["data"]["status"] == "succeeded"


def test_a_contact_is_erased_when_its_events_are_gone(with_bodies_gone: Api) -> None:
    contact_id = one("SELECT id FROM contacts")
    rows(
        "INSERT INTO attempts (delivery_id, number, at, duration_ms, status, response_body)"
        " SELECT id, 1, now(), 5, 500, 'no thanks, ada@example.com' FROM deliveries WHERE contact_id = %s",
        (contact_id,),
    )

    job = with_bodies_gone.done(with_bodies_gone.delete(f"contacts/{contact_id}"))

    assert job["status"] == "succeeded"
    assert one("SELECT count(*) FROM attempts WHERE response_body IS NOT NULL") == 0
    assert one("SELECT count(*) FROM contacts") == 0


def test_a_contact_is_shown_changed_and_erased_when_the_job_that_made_it_is_gone(api: Api, patient: None) -> None:
    contact = api.contact(email="ada@example.com")
    job_id = one("SELECT id FROM jobs")
    partitions.drop_expired(datetime.now(UTC) + 130 * DAY)

    try:
        assert api.get(f"jobs/{job_id}").status_code == 404
        assert api.show_contact(contact["id"])["email"] == "ada@example.com"
        assert api.done(api.patch(f"contacts/{contact['id']}", {"first_name": "Ada"}))["status"] == "succeeded"
        assert api.done(api.delete(f"contacts/{contact['id']}"))["status"] == "succeeded"
        assert set(homes(JOBS).values()) == {JOBS.default}
    finally:
        partitions.make_ahead()
    assert JOBS.default not in homes(JOBS).values()


# Only the partitions concerned are read


@pytest.fixture
def read(uncut: str) -> Callable[..., set[str]]:
    """Runs a statement and undoes it; says which tables of those that are cut were read."""
    made_since(31)

    def run(statement: str, parameters: Any) -> set[str]:
        with database.transaction():
            [(plans,)] = rows(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", parameters)
            database.database.rollback()
        return set(tables_in(plans[0]["Plan"]))

    return run


@pytest.fixture
def read_prepared(read: Callable[..., set[str]]) -> Callable[..., set[str]]:
    """The same of a query that is prepared, by the plan that is made once for all values."""

    def run(name: str, parameters: Any) -> set[str]:
        statement = sql.prepared(name)
        rows("SET plan_cache_mode = force_generic_plan")
        try:
            rows(statement.preparation)
            return read(statement, parameters)
        finally:
            database.database.discard()

    return run


def tables_in(node: dict[str, Any]) -> Iterator[str]:
    if "Scan" in node["Node Type"] and node["Actual Loops"] and node.get("Relation Name"):
        yield node["Relation Name"]
    for below in node.get("Plans", ()):
        yield from tables_in(below)


def home_of(each: partitions.Partitioned, identifier: str) -> str:
    return homes(each)[identifier]


def test_by_identifier_one_partition_is_read(uncut: str, read: Callable[..., set[str]]) -> None:
    for each, model in ((JOBS, Job), (EVENTS, Event), (DELIVERIES, Delivery)):
        identifier = add(each, NOW - 20 * DAY)

        assert read(*model.select().where(model.id == identifier).sql()) == {home_of(each, identifier)}

    delivery_id = add(ATTEMPTS, NOW - 20 * DAY)
    found = Attempt.select().where(Attempt.delivery_id == delivery_id)
    assert read(*found.sql()) == {home_of(ATTEMPTS, delivery_id)}


def test_a_page_does_not_read_what_is_newer_than_its_cursor(read: Callable[..., set[str]]) -> None:
    at = NOW - 20 * DAY
    old, new = add(DELIVERIES, at - timedelta(hours=1)), add(DELIVERIES, NOW)

    page = page_before(Delivery.in_workspace("ws_1"), Delivery, [ids.bound("dlv", at)], 10)

    assert home_of(DELIVERIES, new) not in read(*page.sql())
    assert home_of(DELIVERIES, old) in read(*page.sql())


def test_a_job_is_found_by_its_key_in_one_partition(read: Callable[..., set[str]]) -> None:
    job_id = add(JOBS, NOW - 20 * DAY)
    rows(
        "INSERT INTO idempotency_keys (token_id, key, fingerprint, job_id) VALUES ('tok_1', %s, '', %s)",
        (str(KEY), job_id),
    )
    found = Job.select(Job).join(IdempotencyKey, on=(IdempotencyKey.job_id == Job.id))

    looked_at = read(*found.where(IdempotencyKey.actor_id == "tok_1", IdempotencyKey.key == str(KEY)).sql())

    assert looked_at == {"idempotency_keys", home_of(JOBS, job_id)}


def test_jobs_are_finished_in_the_partitions_that_have_them(read: Callable[..., set[str]]) -> None:
    job_ids = [add(JOBS, NOW) for _ in range(2)]
    outcomes = {"ids": job_ids, "statuses": ["succeeded"] * 2, "effects": ["made"] * 2, "types": ["contact"] * 2}
    outcomes |= {"resources": ["con_1"] * 2, "problems": [None] * 2, "keeps": [False] * 2}  # type: ignore[dict-item]
    outcomes |= {"breakages": [None] * 2}  # type: ignore[dict-item]

    assert read(sql.load("finish_jobs"), outcomes) == {home_of(JOBS, job_ids[0])}


def test_attempts_are_recorded_in_the_partitions_that_have_their_deliveries(
    read_prepared: Callable[..., set[str]],
) -> None:
    delivery_id = add(DELIVERIES, NOW)
    rows("UPDATE deliveries SET status = 'pending', due_at = now(), leased_until = now(), claim = 1")
    outcome = {
        "ids": delivery_id,
        "claims": 1,
        "statuses": "delivered",
        "due_in": None,
        "errors": None,
        "error_codes": None,
        "ats": NOW.timestamp(),
    }
    outcome |= {"durations": 5, "answers": 200, "bodies": "ok", "states": "active"}

    parameters: dict[str, Any] = {name: [value] for name, value in outcome.items()}
    parameters |= {"answering": ["whe_1"], "first_id": delivery_id, "last_id": delivery_id}

    assert read_prepared("record_attempts", parameters) - {"endpoints"} == {home_of(DELIVERIES, delivery_id)}


def test_bodies_are_read_in_the_partitions_that_have_them(read_prepared: Callable[..., set[str]]) -> None:
    event_ids = [add(EVENTS, NOW - days * DAY) for days in (20, 18)]

    looked_at = read_prepared("find_bodies", {"ids": event_ids, "first_id": event_ids[0], "last_id": event_ids[1]})

    assert {home_of(EVENTS, event_id) for event_id in event_ids} <= looked_at
    assert len(looked_at) == 3  # and that of the day between them
