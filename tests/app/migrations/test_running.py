"""Steps beside processes at work: an index of a large table, an update of all its rows, locks, interruptions."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from structlog.testing import capture_logs

from app import migrations, partitions
from app.database import connect_to, rows
from app.errors import SettingsError
from app.migrations import running
from app.migrations.scripts import Index
from app.sql import schema
from tests.cast import until

TABLES = """
CREATE TABLE plain (id int PRIMARY KEY, name text);
CREATE TABLE parts (id int, name text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parts_default PARTITION OF parts DEFAULT;
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (5000);
CREATE INDEX plain_name ON plain (name);
INSERT INTO plain SELECT number, 'a' FROM generate_series(1, 10000) AS number;
INSERT INTO parts SELECT * FROM plain;
"""


@pytest.fixture(autouse=True)
def folder(bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the migrations. The first has made two tables, which count as large."""
    monkeypatch.setattr(schema, "MIGRATIONS", tmp_path)
    monkeypatch.setattr(partitions, "TABLES", ())
    monkeypatch.setattr(running, "SMALL_BYTES", 0)
    monkeypatch.setattr(running, "PAGES", 7)
    monkeypatch.setattr(running, "PAUSE_SECONDS", 0.01)
    (tmp_path / "1.sql").write_text(TABLES)
    migrations.upgrade()
    return tmp_path


def indexes() -> dict[str, tuple[str, bool]]:
    """The definition of each index, and whether it is valid."""
    found = rows("SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), indisvalid FROM pg_index")
    return {name: (definition, is_valid) for name, definition, is_valid in found}


def test_an_index_of_a_partitioned_table_is_built_in_its_partitions(folder: Path) -> None:
    (folder / "2.sql").write_text("CREATE INDEX parts_name ON parts (name);")

    assert migrations.upgrade() == ["2.sql"]

    assert indexes()["parts_name"] == ("CREATE INDEX parts_name ON ONLY public.parts USING btree (name)", True)
    assert indexes().keys() >= {"parts_name_1", "parts_name_default"}


def test_a_partition_that_is_made_meanwhile_has_the_index_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "2.sql").write_text("CREATE INDEX parts_name ON parts (name);")
    build = running._concurrently

    def make_partition(index: Index, name: str, table: str) -> None:
        # As `app/partitions.py` does.
        rows("CREATE TABLE IF NOT EXISTS parts_2 (LIKE parts INCLUDING ALL)")
        rows("ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (20000) TO (30000)")
        monkeypatch.setattr(running, "_concurrently", build)
        build(index, name, table)

    monkeypatch.setattr(running, "_concurrently", make_partition)

    migrations.upgrade()

    assert indexes()["parts_name"][1] is True
    assert [name for name in indexes() if name.startswith("parts_2_name")] == ["parts_2_name_idx"]


def test_an_index_that_is_made_anew_has_its_name(folder: Path) -> None:
    (folder / "2.sql").write_text("DROP INDEX plain_name;\nCREATE INDEX plain_name ON plain (name, id);")

    migrations.upgrade()

    assert indexes()["plain_name"] == ("CREATE INDEX plain_name ON public.plain USING btree (name, id)", True)
    assert "plain_name_next" not in indexes()


@pytest.mark.parametrize("table", ["plain", "parts"])
def test_an_update_reaches_every_row(folder: Path, table: str) -> None:
    (folder / "2.sql").write_text(f"UPDATE {table} SET name = '100%' WHERE id > 5 OR id < 3;")

    migrations.upgrade()

    assert rows(f"SELECT count(*) FROM {table} WHERE name = %s", ("100%",)) == [(9_997,)]


def test_after_a_failure_the_step_that_failed_comes_next(folder: Path) -> None:
    (folder / "2.sql").write_text("CREATE TABLE a (); COMMIT; CREATE TABLE b (); SELECT 1 / 0;")
    with pytest.raises(psycopg2.errors.DivisionByZero):
        migrations.upgrade()
    assert rows("SELECT to_regclass('a') IS NULL, to_regclass('b') IS NULL") == [(False, True)]
    assert migrations.pending() == ["2.sql"]

    (folder / "2.sql").write_text("CREATE TABLE a (); COMMIT; CREATE TABLE b ();")

    assert migrations.upgrade() == ["2.sql"]
    assert migrations.pending() == []
    assert rows("SELECT * FROM migration_steps") == []


@pytest.mark.parametrize("table", ["plain", "parts_1"])
def test_an_index_whose_build_failed_is_built_again(folder: Path, table: str) -> None:
    (folder / "2.sql").write_text(f"CREATE UNIQUE INDEX {table}_unique ON {table} (name);")
    with pytest.raises(psycopg2.errors.UniqueViolation):
        migrations.upgrade()
    assert indexes()[f"{table}_unique"][1] is False
    rows(f"UPDATE {table} SET name = id")

    migrations.upgrade()

    assert indexes()[f"{table}_unique"][1] is True


def test_a_table_in_use_is_waited_for_without_keeping_others_out(folder: Path, bare: str) -> None:
    (folder / "2.sql").write_text("ALTER TABLE plain ADD COLUMN age int;")
    upgrade = threading.Thread(target=migrations.upgrade)
    with closing(psycopg2.connect(bare)) as user, user.cursor() as cursor, capture_logs() as lines:
        cursor.execute("SELECT count(*) FROM plain")
        upgrade.start()
        until(lambda: [line["event"] for line in lines].count("migration.waits") > 1)

        assert rows("SELECT count(*) FROM plain") == [(10_000,)]
        user.rollback()

    upgrade.join()
    assert lines[-1]["statement"] == "ALTER TABLE plain ADD COLUMN age int"
    assert rows("SELECT count(age) FROM plain") == [(0,)]


def test_behind_a_pooler_a_long_build_is_refused(folder: Path, bare: str) -> None:
    (folder / "2.sql").write_text("CREATE INDEX plain_id ON plain (id);")
    connect_to(bare, "transaction")

    with pytest.raises(SettingsError, match="not of the pooler"):
        migrations.upgrade()
