from __future__ import annotations

from app.migrations import scripts
from app.migrations.scripts import Batches, Index, Transaction

INDEX = "CREATE INDEX old_name ON old (lower(name)) WHERE name <> ';'"


def test_statements_take_effect_together() -> None:
    text = (
        "-- It's; one.\nCREATE TABLE new (id text); INSERT INTO new VALUES ('a;--b');\nCREATE INDEX new_id ON new (id);"
    )

    assert scripts.steps(text) == [
        Transaction(
            ["CREATE TABLE new (id text)", "INSERT INTO new VALUES ('a;--b')", "CREATE INDEX new_id ON new (id)"]
        )
    ]


def test_the_body_of_a_function_is_not_cut() -> None:
    function = "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN COMMIT; -- it's\nEND $$"

    assert scripts.steps(f"{function};") == [Transaction([function])]


def test_commit_and_an_index_of_an_older_table_end_a_transaction() -> None:
    text = f"ALTER TABLE old ADD a int; COMMIT; ALTER TABLE old ADD b int; {INDEX}; ALTER TABLE old ADD c int;"

    first, second, index, third = scripts.steps(text)

    assert [first, second] == [Transaction(["ALTER TABLE old ADD a int"]), Transaction(["ALTER TABLE old ADD b int"])]
    assert index == Index("old_name", "old", "", "(lower(name)) WHERE name <> ';'", is_replaced=False)
    assert third == Transaction(["ALTER TABLE old ADD c int"])


def test_an_update_between_two_ends_is_made_in_batches() -> None:
    text = "ALTER TABLE old ADD a int; COMMIT; UPDATE old SET a = 1 WHERE a IS NULL; COMMIT; INSERT INTO b VALUES (1);"

    assert scripts.steps(text)[1] == Batches("UPDATE old SET a = 1 WHERE a IS NULL")


def test_an_index_that_is_made_anew_stays_until_its_successor_is_there() -> None:
    [step] = scripts.steps(f"DROP INDEX old_name; {INDEX};")

    assert isinstance(step, Index)
    assert step.is_replaced
