"""Statements that connections prepare: planned once by each, whatever becomes of the connection."""

from __future__ import annotations

import pytest

from app import sql
from app.database import database, rows, transaction, which_hold
from tests.cast import Api, accept, all_of, one


class Undone(Exception):
    pass


@pytest.fixture
def workspace_id(api: Api) -> str:
    database.discard()
    return api.workspace_id


def prepared() -> list[str]:
    """What this thread's connection has prepared."""
    return all_of("SELECT name FROM pg_prepared_statements ORDER BY name")


NASTY = ["", "NULL", None, "a,b", "{}", '"', "\\", '\\"', "'", " x ", "\n\t", "ü€\U0001f600", "%s", "a;b"]


def test_an_array_is_read_as_it_was_written(workspace_id: str) -> None:
    numbers = [1, -2, None, 1779465600.123456]

    assert rows("SELECT %s::text[], %s::float[]", (sql.array(NASTY), sql.array(numbers))) == [(NASTY, numbers)]
    assert rows("SELECT %s::text[]", (sql.array([]),)) == [([],)]


def test_the_server_notices_a_client_that_has_vanished(workspace_id: str) -> None:
    names = ["tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout"]

    assert [one(f"SHOW {name}") for name in names] == ["5", "3", "3", "15000"]


def accept_one(workspace_id: str) -> str:
    return accept(workspace_id, "contacts.upsert", {"external_id": "one"}).id


def accept_and_undo(workspace_id: str) -> None:
    with transaction():
        accept_one(workspace_id)
        raise Undone


def test_a_connection_prepares_a_query_when_it_is_first_needed(workspace_id: str) -> None:
    before = prepared()

    accepted = [accept_one(workspace_id) for _ in range(3)]

    assert (before, prepared()) == ([], ["accept"])
    assert all_of("SELECT id FROM jobs ORDER BY position") == accepted


def test_behind_a_pooler_nothing_is_prepared(workspace_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "keeps_sessions", False)

    accepted = [accept_one(workspace_id) for _ in range(2)]

    assert prepared() == []
    assert all_of("SELECT id FROM jobs ORDER BY position") == accepted


def test_a_new_connection_prepares_it_again(workspace_id: str) -> None:
    accept_one(workspace_id)
    database.discard()

    accept_one(workspace_id)

    assert one("SELECT count(*) FROM jobs") == 2


def test_what_was_prepared_outlasts_a_transaction_that_is_undone(workspace_id: str) -> None:
    with pytest.raises(Undone):
        accept_and_undo(workspace_id)

    accept_one(workspace_id)

    assert one("SELECT count(*) FROM jobs") == 1


def test_a_prepared_query_follows_a_change_of_its_table(workspace_id: str) -> None:
    accept_one(workspace_id)
    rows("ALTER TABLE jobs ADD COLUMN spare text DEFAULT 'yes'")
    try:
        accept_one(workspace_id)

        assert all_of("SELECT spare FROM jobs") == ["yes", "yes"]
    finally:
        rows("ALTER TABLE jobs DROP COLUMN spare")


def test_no_plan_reads_a_whole_table_that_is_empty_as_yet(workspace_id: str) -> None:
    def plan() -> str:
        return "\n".join(line for (line,) in rows("EXPLAIN SELECT FROM to_come WHERE id = 1"))

    try:
        rows("CREATE TEMPORARY TABLE to_come (id integer PRIMARY KEY); ANALYZE to_come")
        ours = plan()
        rows("SET enable_seqscan = on")
        by_itself = plan()
    finally:
        database.discard()

    assert "Seq Scan" not in ours
    assert "Seq Scan" in by_itself


def test_of_many_conditions_those_that_hold_are_found(workspace_id: str) -> None:
    conditions = ["EXISTS (SELECT FROM workspaces)", "EXISTS (SELECT FROM jobs)", "true", "NULL"]

    assert which_hold(conditions) == {"EXISTS (SELECT FROM workspaces)", "true"}
    accept_one(workspace_id)
    assert which_hold(conditions) == {"EXISTS (SELECT FROM workspaces)", "EXISTS (SELECT FROM jobs)", "true"}
    assert which_hold(["false"]) == which_hold([]) == set()
