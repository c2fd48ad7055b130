"""Places of live updates belong to a timeline: a real standby that was behind takes over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg2
import pytest

from app import database
from app.config import settings
from app.database import rows
from app.domain.insight import updates
from app.domain.insight.updates import Forgotten, StreamPosition
from tests.conftest import Servers
from tests.stack.standby import Standby


def note(subject_id: str) -> None:
    rows("INSERT INTO updates (workspace_id, kind, subject_id) VALUES ('ws_1', 'message', %s)", (subject_id,))


@pytest.fixture
def standby(servers: Servers, empty: None) -> Iterator[Standby]:
    """One that has what was committed when it was made, and is stopped."""
    with TemporaryDirectory(prefix="bellhop-tests-", ignore_cleanup_errors=True) as directory:
        standby = Standby(Path(directory) / "standby", servers.postgres)
        standby.start()
        standby.stop()
        yield standby
        database.database.close()
        database.connect()
        standby.stop()


def take_over(standby: Standby) -> None:
    """From now on this process asks the standby."""
    standby.start()
    database.database.close()
    database.connect_to(standby.database_url("tests"))
    assert rows("SELECT pg_promote()") == [(True,)]


def test_a_place_that_a_standby_never_reached_is_forgotten_when_its_numbers_come_again(standby: Standby) -> None:
    kept = updates.present()
    for number in range(5):
        note(f"lost {number}")
    found, lost = updates.read(kept, 3)
    everything = updates.present()
    take_over(standby)
    for number in range(50):
        note(f"new {number}")

    for place in (kept, found[0].place, lost, everything, StreamPosition.parse(str(everything))):
        with pytest.raises(Forgotten):
            updates.read(place, 100)
        with pytest.raises(Forgotten):
            updates.read_missed(place, updates.present(), "ws_1", 100)
    place = updates.present()
    note("newest")
    assert [update.subject_id for update in updates.read(place, 100)[0]] == ["newest"]


def test_a_place_stays_good_when_the_server_crashes(servers: Servers, empty: None) -> None:
    place = updates.present()
    rows("SET synchronous_commit TO on")
    note("before")
    database.database.close()
    servers.postgres.kill()
    servers.postgres.start()

    note("after")
    assert [update.subject_id for update in updates.read(place, 100)[0]] == ["before", "after"]


def test_a_role_that_may_not_know_the_timeline_is_told_none(empty: None) -> None:
    # Never committed: neither the role nor the lack of rights outlives the test.
    with closing(psycopg2.connect(settings().database_url)) as owner, owner.cursor() as cursor:
        cursor.execute("CREATE ROLE ordinary; SET LOCAL ROLE ordinary; SELECT cluster_timeline()")
        assert cursor.fetchone() == (updates.present().timeline,)
        cursor.execute("RESET ROLE; REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        cursor.execute("SET LOCAL ROLE ordinary; SELECT cluster_timeline()")
        assert cursor.fetchone() == ("",)
