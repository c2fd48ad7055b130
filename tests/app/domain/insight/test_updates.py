"""Live updates are found exactly once from any place, in whatever order transactions commit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg2
import pytest

from app import metrics
from app.config import settings
from app.database import rows
from app.domain.insight import updates
from app.domain.insight.updates import Forgotten, MissedTooMuch, StreamPosition, Update
from app.domain.people import notifications
from tests import talks
from tests.cast import Api, accept, apply, one
from tests.listening import an_hour_passes
from tests.people import make_member

MANY = 1_000


@pytest.fixture
def connections(empty: None) -> Iterator[list[Any]]:
    """Four connections beside ours."""
    made = [psycopg2.connect(settings().database_url) for _ in range(4)]
    yield made
    for each in made:
        each.close()


def note(connection: Any, subject_id: str, workspace_id: str = "ws_1") -> None:
    connection.cursor().execute(
        "INSERT INTO updates (workspace_id, kind, subject_id) VALUES (%s, 'message', %s)", (workspace_id, subject_id)
    )


def after(place: StreamPosition) -> list[str]:
    return [update.subject_id for update in updates.read(place, MANY)[0]]


def kinds(place: StreamPosition) -> list[tuple[str, str]]:
    return [(update.kind, update.subject_id) for update in updates.read(place, MANY)[0]]


def contact_of(api: Api) -> str:
    return str(one("SELECT id FROM contacts WHERE workspace_id = %s LIMIT 1", api.workspace_id))


@pytest.fixture
def contact_id(api: Api) -> str:
    api.post("contacts", {"email": "ada@example.com"})
    apply(api.workspace_id)
    return contact_of(api)


# What is noted


def test_a_message_and_its_conversation_are_noted(api: Api, contact_id: str) -> None:
    place, channel_id = updates.present(), talks.make_channel(api.workspace_id)

    message = talks.receive(api.workspace_id, contact_id, channel_id)

    found = set(kinds(place))
    assert {("conversation", message.conversation_id), ("message", message.id)} <= found
    assert sorted(kind for kind, _ in found) == ["conversation", "message", "notification"]


def test_only_changes_that_can_be_seen_are_noted(api: Api, contact_id: str) -> None:
    message = talks.receive(api.workspace_id, contact_id, talks.make_channel(api.workspace_id))
    place = updates.present()

    rows("UPDATE messages SET claim = claim + 1, leased_until = now() WHERE id = %s", (message.id,))
    rows("UPDATE conversations SET paced_until = now() WHERE id = %s", (message.conversation_id,))
    assert kinds(place) == []

    rows("UPDATE messages SET status = 'read' WHERE id = %s", (message.id,))
    rows("UPDATE conversations SET unread = 3 WHERE id = %s", (message.conversation_id,))
    assert kinds(place) == [("message", message.id), ("conversation", message.conversation_id)]


def test_the_life_cycle_of_a_run_is_noted(api: Api, contact_id: str) -> None:
    place = updates.present()
    run_id = talks.make_run(api.workspace_id, contact_id)
    rows("UPDATE runs SET taken = 2 WHERE id = %s", (run_id,))
    rows("UPDATE runs SET status = 'completed' WHERE id = %s", (run_id,))

    assert kinds(place) == [("run", run_id), ("run", run_id)]


def test_a_notification_is_noted(api: Api) -> None:
    place = updates.present()

    notifications.note(api.workspace_id, "usage_high", "once", {})

    assert [kind for kind, _ in kinds(place)] == ["notification"]


def test_a_job_is_noted_if_a_person_asked_for_it(api: Api) -> None:
    _, member = make_member(api.workspace_id)
    place = updates.present()
    job = accept(api.workspace_id, "contacts.upsert", {"email": "ada@example.com"})
    rows("UPDATE jobs SET token_id = %s, status = 'succeeded' WHERE id = %s", (member.id, job.id))
    accept(api.workspace_id, "contacts.upsert", {"email": "eve@example.com"})

    [update] = updates.read(place, MANY)[0]
    assert (update.kind, update.subject_id, update.actor_id) == ("job", job.id, member.id)


# Places


def test_what_commits_late_is_found_after_what_committed_before_it(connections: list[Any]) -> None:
    late, early, *_ = connections
    note(late, "late")
    note(early, "early")
    early.commit()
    found, place = updates.read(StreamPosition(updates.present().timeline, "1:1:"), MANY)
    late.commit()

    assert [update.subject_id for update in found] == ["early"]
    assert after(place) == ["late"]
    assert after(found[0].place) == ["late"]


def test_what_is_rolled_back_is_never_found(connections: list[Any]) -> None:
    place = updates.present()
    note(connections[0], "never")
    connections[0].rollback()

    assert after(place) == []


def test_a_transaction_that_stays_open_delays_no_other(connections: list[Any]) -> None:
    held, quick, *_ = connections
    note(held, "held")
    place = updates.present()
    for number in range(3):
        note(quick, f"quick-{number}")
        quick.commit()
        found, place = updates.read(place, MANY)
        assert [update.subject_id for update in found] == [f"quick-{number}"]
    held.commit()

    assert after(place) == ["held"]


def test_an_update_follows_those_that_had_committed_when_it_was_noted(connections: list[Any]) -> None:
    older, newer, *_ = connections
    place = updates.present()
    older.cursor().execute("SELECT pg_current_xact_id()")
    note(newer, "first")
    newer.commit()
    note(older, "second")
    older.commit()

    assert after(place) == ["first", "second"]


def missed(place: StreamPosition, workspace_id: str = "ws_1", subject_ids: list[str] | None = None) -> list[str]:
    found = updates.read_missed(place, updates.present(), workspace_id, MANY, subject_ids)
    return [update.subject_id for update in found]


def test_what_a_workspace_has_missed_is_its_own(connections: list[Any]) -> None:
    place = updates.present()
    for workspace_id in ("ws_1", "ws_2"):
        for name in ("first", "second"):
            note(connections[0], f"{name} of {workspace_id}", workspace_id)
    connections[0].commit()

    assert missed(place, "ws_2") == ["first of ws_2", "second of ws_2"]
    assert missed(place, subject_ids=["second of ws_1", "second of ws_2"]) == ["second of ws_1"]
    assert missed(place, subject_ids=[]) == []


def test_who_has_missed_more_than_is_read_is_told_so(connections: list[Any]) -> None:
    place = updates.present()
    for number in range(4):
        note(connections[0], str(number))
    connections[0].commit()

    assert len(updates.read_missed(place, updates.present(), "ws_1", 4)) == 4
    with pytest.raises(MissedTooMuch):
        updates.read_missed(place, updates.present(), "ws_1", 3)


def walk(place: StreamPosition, limit: int) -> tuple[list[Update], StreamPosition]:
    """All updates after the place, a few at a time."""
    found: list[Update] = []
    while True:
        was_within = place.until is not None
        some, place = updates.read(place, limit)
        found += some
        if not was_within and place.until is None:
            return found, place


@pytest.mark.parametrize("seed", range(5))
def test_from_every_place_exactly_what_was_not_delivered_is_found(connections: list[Any], seed: int) -> None:
    chance, place = random.Random(seed), updates.present()
    delivered = list[Update]()
    for number in range(60):
        connection = chance.choice(connections)
        note(connection, str(number))
        if chance.random() < 0.4:
            connection.commit() if chance.random() < 0.8 else connection.rollback()
        if chance.random() < 0.3:
            some, place = walk(place, chance.randint(1, 4))
            delivered += some
    for connection in connections:
        connection.commit()
    delivered += walk(place, 3)[0]

    everything = [update.subject_id for update in delivered]
    assert sorted(everything) == sorted(row[0] for row in rows("SELECT subject_id FROM updates"))
    for position, update in enumerate(delivered):
        rest = [each.subject_id for each in walk(StreamPosition.parse(str(update.place)), 2)[0]]
        assert sorted(rest) == sorted(everything[position + 1 :])
        assert sorted(missed(update.place)) == sorted(everything[position + 1 :])


def test_what_was_missed_ends_at_a_place(connections: list[Any]) -> None:
    began = updates.present()
    note(connections[0], "before")
    connections[0].commit()
    aim = updates.present()
    note(connections[0], "behind")
    connections[0].commit()

    assert [update.subject_id for update in updates.read_missed(began, aim, "ws_1", MANY)] == ["before"]


# Old ones


def test_what_was_visible_an_hour_ago_is_forgotten(connections: list[Any]) -> None:
    began = updates.present()
    note(connections[0], "old")
    connections[0].commit()
    middle = updates.present()
    an_hour_passes()
    note(connections[0], "new")
    connections[0].commit()

    assert updates.forget_old() == 1
    assert updates.forget_old() == 0
    with pytest.raises(Forgotten):
        updates.read(began, MANY)
    assert after(middle) == ["new"]


def test_a_place_is_good_for_an_hour_while_a_transaction_is_open_for_longer(connections: list[Any]) -> None:
    held, quick, *_ = connections
    note(held, "held")
    note(quick, "delivered")
    quick.commit()
    place = updates.present()
    an_hour_passes()
    an_hour_passes()
    assert updates.forget_old() == 0
    note(quick, "quick")
    quick.commit()
    found, place = updates.read(place, MANY)
    held.commit()
    assert updates.forget_old() == 0

    assert [update.subject_id for update in found] == ["quick"]
    assert after(place) == ["held"]


def test_a_transaction_that_is_open_in_another_database_keeps_places_good(empty: None) -> None:
    elsewhere = psycopg2.connect(settings().database_url.rpartition("/")[0] + "/postgres")
    elsewhere.cursor().execute("SELECT pg_current_xact_id()")
    place = updates.present()
    an_hour_passes()

    updates.forget_old()
    assert after(place) == []
    elsewhere.close()


def test_old_updates_are_forgotten_in_batches(connections: list[Any]) -> None:
    for number in range(7):
        note(connections[0], str(number))
        connections[0].commit()
    an_hour_passes()

    assert updates.forget_old(limit=2, most_batches=2) == 4
    assert updates.forget_old(limit=2) == 3


def test_the_age_of_the_oldest_transaction_is_a_metric(connections: list[Any]) -> None:
    def age() -> float:
        updates.forget_old()
        return float(metrics.OLDEST_TRANSACTION_SECONDS._value.get())

    for connection in connections[:2]:
        note(connection, "held")
    connections[1].commit()
    an_hour_passes()
    assert age() == pytest.approx(3_660, abs=60)
    an_hour_passes()
    assert age() == pytest.approx(7_320, abs=60)

    connections[0].rollback()
    assert age() == 0
    an_hour_passes()
    an_hour_passes()
    assert age() == 0
    assert one("SELECT count(*) FROM update_horizons") <= 2


def test_a_snapshot_that_only_reads_has_an_age_too(connections: list[Any]) -> None:
    def age() -> float:
        updates.forget_old()
        return float(metrics.OLDEST_TRANSACTION_SECONDS._value.get())

    reader = connections[0]
    reader.set_session(isolation_level="REPEATABLE READ", readonly=True)
    assert age() == 0
    reader.cursor().execute("SELECT 1")

    first, second = age(), age()
    assert 0 < first < second

    reader.rollback()
    assert age() == 0


def test_places_are_good_in_a_cluster_into_which_a_dump_of_another_was_restored(connections: list[Any]) -> None:
    rows("INSERT INTO updates (transaction_id, workspace_id, kind, subject_id) VALUES ('999999999', 'w', 'm', 'old')")
    rows("INSERT INTO updates_forgotten (until) VALUES ('999999998')")
    rows("INSERT INTO update_horizons VALUES (now() - interval '2 hours', '999999998', '999999999')")
    place = updates.present()
    note(connections[0], "new")
    connections[0].commit()

    assert updates.forget_old() == 1
    assert after(place) == ["new"]
    an_hour_passes()
    assert updates.forget_old() == 1
    with pytest.raises(Forgotten):
        updates.read(place, MANY)


@pytest.mark.parametrize(
    "numbers",
    [
        "",
        "0",
        "x",
        "1:2",
        "5:1:",
        "1:5:9",
        "1:5:3,2",
        "1:1:;",
        "1:1:;1:1:;x",
        "1:1:;1:1:;1;1",
        "9" * 18 + ":" + "9" * 18 + ":",
    ],
)
def test_what_is_no_place_of_ours_is_forgotten(empty: None, numbers: str) -> None:
    with pytest.raises(Forgotten):
        updates.read(StreamPosition.parse(f"{updates.present().timeline};{numbers}"), MANY)


@pytest.mark.parametrize("text", ["", "1:1:", ";1:1:", "6f;1:1:", "6g/1;1:1:", "6f/1;1:1:", "6f/;1:1:"])
def test_a_place_without_our_timeline_is_forgotten(empty: None, text: str) -> None:
    with pytest.raises(Forgotten):
        updates.read(StreamPosition.parse(text), MANY)


def test_a_place_is_what_its_text_says() -> None:
    for place in (
        StreamPosition("", "1:1:"),
        StreamPosition("6f/1", "7:9:7"),
        StreamPosition("6f/1A", "7:9:7,8", "8:9:", 17),
    ):
        assert StreamPosition.parse(str(place)) == place
