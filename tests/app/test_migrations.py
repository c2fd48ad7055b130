from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg2
import pytest

from app import migrations
from app.database import rows
from app.domain.insight import checks
from app.errors import SettingsError
from app.migrations import running
from app.migrations.scripts import Index
from app.sql.schema import REPLACED, pending
from tests.conftest import Servers

ROOT = Path(__file__).parents[2]
UPGRADE = [sys.executable, "-m", "app", "db", "upgrade"]


def every_file() -> list[str]:
    return sorted(path.name for path in (ROOT / "app" / "migrations").glob("*.sql"))


def schema(url: str) -> list[tuple[str, ...]]:
    """Columns and indexes, without those of partitions: which of these there are depends on the day."""
    connection = psycopg2.connect(url)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type, is_nullable, coalesce(column_default, '')"
            " FROM information_schema.columns JOIN pg_class ON oid = table_name::regclass AND NOT relispartition"
            " WHERE table_schema = 'public'"
            " UNION ALL SELECT tablename, indexname, indexdef, '', ''"
            " FROM pg_indexes JOIN pg_class ON oid = tablename::regclass AND NOT relispartition"
            " WHERE schemaname = 'public' ORDER BY 1, 2, 3"
        )
        found = cursor.fetchall()
    connection.close()
    return found


def test_migrations_run_in_order_and_once(bare: str) -> None:
    assert migrations.pending() == every_file()

    assert migrations.upgrade() == every_file()

    assert migrations.pending() == []
    assert migrations.upgrade() == []


def test_a_second_run_changes_nothing(bare: str, servers: Servers) -> None:
    migrations.upgrade()
    first = schema(bare)

    migrations.upgrade()

    assert schema(bare) == first == schema(servers.database_url)


def environment(url: str) -> dict[str, str]:
    return os.environ | {"DATABASE_URL": url}


def test_four_machines_at_once_migrate_once(bare: str) -> None:
    running = [
        subprocess.Popen(UPGRADE, cwd=ROOT, env=environment(bare), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for _ in range(4)
    ]
    said = [process.communicate(timeout=240)[0].decode() for process in running]

    assert [process.returncode for process in running] == [0] * 4, said
    assert "".join(said).count("ran 0087_baseline.sql") == 1
    assert migrations.pending() == []


def test_a_database_that_is_away_is_one_line() -> None:
    done = subprocess.run(
        UPGRADE,
        cwd=ROOT,
        env=environment("postgresql://postgres@127.0.0.1:1/none"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("bellhop: the database does not respond")


def upgrade_before(name: str, patch: pytest.MonkeyPatch) -> None:
    """Makes the schema of an earlier version, without the migration of that name and those behind it."""
    patch.setattr(migrations, "pending", lambda: [each for each in every_file() if each < name])
    migrations.upgrade()


def make_with_files(number: int, patch: pytest.MonkeyPatch) -> None:
    """Makes a database on which that many of the files that the baseline replaces are noted, not the baseline."""
    with patch.context() as before:
        upgrade_before("0088", before)
    rows("DELETE FROM migrations")
    rows(
        "INSERT INTO migrations (name) SELECT lpad(n::text, 4, '0') || '_old.sql' FROM generate_series(1, %s) n",
        (number,),
    )


def test_a_database_of_the_first_release_goes_on_behind_the_baseline(
    bare: str, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_with_files(REPLACED, monkeypatch)
    rows("INSERT INTO workspaces (id, name) VALUES ('ws_1', 'Shop')")

    assert migrations.upgrade() == every_file()[1:]

    assert migrations.pending() == migrations.upgrade() == []
    assert schema(bare) == schema(servers.database_url)
    assert rows("SELECT name FROM workspaces") == [("Shop",)]


@pytest.mark.parametrize("number", [1, REPLACED - 1])
def test_a_database_from_before_the_first_release_is_refused(
    bare: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    make_with_files(number, monkeypatch)
    noted = rows("SELECT * FROM migrations")

    with pytest.raises(SettingsError, match=r"older than release 0\.1\.0: run `db upgrade` of that release first"):
        migrations.upgrade()

    assert rows("SELECT * FROM migrations") == noted
    assert checks.look("migrations").text.startswith("this database is older than release 0.1.0")
    assert pending(rows) == every_file(), "processes wait"


def test_support_members_become_staff_of_the_installation_whose_acts_are_found(
    bare: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        upgrade_before("0098", before)
    rows("INSERT INTO workspaces (id, name) VALUES ('ws_1', 'Shop')")
    rows(
        "INSERT INTO accounts (id, email, password_hash, is_support) VALUES"
        " ('acc_1', 'grace@example.com', 'hers', true), ('acc_2', 'ada@example.com', 'hers', false)"
    )
    rows(
        "INSERT INTO members (id, workspace_id, account_id, role) VALUES"
        " ('mem_1', 'ws_1', 'acc_1', 'agent'), ('mem_2', 'ws_1', 'acc_2', 'owner')"
    )
    rows(
        "INSERT INTO visits (id, account_id, workspace_id, reason, ticket, created_at, expires_at)"
        " VALUES ('vis_1', 'acc_1', 'ws_1', 'Reason', 'T-1', now(), now() + interval '1 hour')"
    )
    for number, (actor_type, actor_id) in enumerate(
        [("support", "vis_1"), ("member", "mem_1"), ("member", "mem_2"), ("member", "mem_gone"), ("command", None)]
    ):
        rows(
            "INSERT INTO audit_entries (id, workspace_id, action, actor_type, actor_id, target_type, target_id, detail,"
            " trace_id) VALUES (%s, 'ws_1', 'endpoints.enable', %s, %s, 'endpoint', 'whe_1', '{}', 'trace')",
            (f"aud_{number}", actor_type, actor_id),
        )

    migrations.upgrade()

    [grace, _] = rows("SELECT id, email, password_hash, is_support, disabled_at FROM accounts ORDER BY id")
    assert grace == ("acc_1", "grace@example.com", "hers", True, None)
    assert rows("SELECT id, role, availability FROM members ORDER BY id") == [
        ("mem_1", "agent", "away"),
        ("mem_2", "owner", "available"),
    ]
    found = [account_id for (account_id,) in rows("SELECT account_id FROM audit_entries ORDER BY id")]
    assert found == ["acc_1", "acc_1", "acc_2", None, None]


def test_contacts_are_found_by_tag_while_their_search_keys_change(bare: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        upgrade_before("0088", before)
    rows("INSERT INTO workspaces (id, name) VALUES ('ws_1', 'Shop')")
    rows("INSERT INTO contacts (id, workspace_id, tags) VALUES ('con_1', 'ws_1', ARRAY['VIP'])")
    build, found = running._concurrently, [found_by_tag("VIP")]

    def build_and_look(index: Index, name: str, table: str) -> None:
        build(index, name, table)
        found.append(found_by_tag("VIP"))

    monkeypatch.setattr(running, "SMALL_BYTES", 0)
    monkeypatch.setattr(running, "_concurrently", build_and_look)

    migrations.upgrade()

    assert len(found) > 1, "an index was built"
    assert [*found, found_by_tag("VIP"), found_by_tag("vip")] == [["con_1"]] * (len(found) + 2)


def found_by_tag(tag: str) -> list[str]:
    """Identifiers of contacts that the index has under the tag."""
    found = rows(
        "SELECT id FROM contacts WHERE contact_keys(workspace_id, segment, search, tags)"
        " @> contact_keys_sought('ws_1', 0, '', ARRAY[%s])",
        (tag,),
    )
    return [contact_id for (contact_id,) in found]
