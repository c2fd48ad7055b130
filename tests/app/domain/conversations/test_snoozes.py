"""Snoozes: until a time, or until the contact writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from app.database import rows
from app.domain.conversations import snoozes
from app.errors import Conflict
from tests.cast import Api, all_of, event_kinds, in_threads, one
from tests.talks import change, close, locked, receive, recent

UNTIL = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)


def snooze(workspace_id: str, contact_id: str, until: datetime = UNTIL) -> None:
    def task(unit: Any, contact: Any) -> Any:
        return snoozes.snooze(change(unit, workspace_id), contact, recent(unit, contact), until)

    locked(workspace_id, contact_id, task)


def told(workspace_id: str) -> list[str]:
    return [kind.partition(".")[2] for kind in event_kinds(workspace_id) if kind.startswith("conversation.")][1:]


def snoozed() -> list[datetime | None]:
    return all_of("SELECT snoozed_until FROM conversations ORDER BY id")


@pytest.fixture
def talk(workspace_id: str, contact_id: str, channel_id: str) -> Callable[[], object]:
    """An open conversation; writes in it once more."""
    write = partial(receive, workspace_id, contact_id, channel_id)
    write()
    return write


def test_it_wakes_at_its_time_once(workspace_id: str, contact_id: str, talk: Callable[[], object]) -> None:
    snooze(workspace_id, contact_id)
    snooze(workspace_id, contact_id)
    assert (snoozes.wake_some(), snoozed(), told(workspace_id)) == (0, [UNTIL], ["snoozed"])

    rows("UPDATE conversations SET snoozed_until = now()")

    woken = sum(in_threads([snoozes.wake_some, snoozes.wake_some]))  # each may find that the other holds it
    assert woken + snoozes.wake_some() == 1
    assert (snoozes.wake_some(), snoozed(), told(workspace_id)) == (0, [None], ["snoozed", "woken"])
    assert one("SELECT status FROM conversations") == "open"


def test_it_wakes_when_the_contact_writes(workspace_id: str, contact_id: str, talk: Callable[[], object]) -> None:
    snooze(workspace_id, contact_id)

    talk()
    talk()

    assert (snoozed(), told(workspace_id)) == ([None], ["snoozed", "woken"])


def test_closing_it_ends_the_snooze(workspace_id: str, contact_id: str, talk: Callable[[], object]) -> None:
    snooze(workspace_id, contact_id)

    close(workspace_id, contact_id)

    assert (snoozed(), told(workspace_id)) == ([None], ["snoozed", "closed"])
    with pytest.raises(Conflict):
        snooze(workspace_id, contact_id)


def test_of_a_workspace_with_many_a_pass_wakes_some_and_of_others_too(
    workspace_id: str, contact_id: str, talk: Callable[[], object], others: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snoozes, "EACH", 3)
    monkeypatch.setattr(snoozes, "PART", 2)
    rows(
        """
        INSERT INTO conversations (id, workspace_id, contact_id, channel_id, snoozed_until)
        SELECT 'cnv_' || n, workspace_id, contact_id, channel_id, now() - interval '1 hour'
        FROM conversations, generate_series(1, 20) AS n RETURNING 1
        """
    )
    stranger = others.contact(email="other@example.com")["id"]
    rows(
        "INSERT INTO conversations (id, workspace_id, contact_id, channel_id, snoozed_until)"
        " VALUES ('cnv_other', %s, %s, 'chn_other', now())",
        (others.workspace_id, stranger),
    )

    assert snoozes.wake_some() == 4
    assert one("SELECT snoozed_until FROM conversations WHERE id = 'cnv_other'") is None
    while snoozes.wake_some():
        pass
    assert set(snoozed()) == {None}
    assert event_kinds(workspace_id).count("conversation.woken") == 20


def test_what_is_due_is_found_by_an_index(workspace_id: str, contact_id: str, talk: Callable[[], object]) -> None:
    rows(
        """
        INSERT INTO conversations (id, workspace_id, contact_id, channel_id, snoozed_until)
        SELECT 'cnv_' || n, workspace_id, contact_id, channel_id,
            CASE WHEN n %% 5 = 0 THEN now() + interval '1 hour' END
        FROM conversations, generate_series(1, %s) AS n RETURNING 1
        """,
        (20_000,),
    )
    rows("ANALYZE conversations")

    for query in (snoozes._DUE % {"each": 50}, f"SELECT {snoozes.IS_ANY_OVER}"):
        plan = "\n".join(line for (line,) in rows(f"EXPLAIN {query}"))
        assert "conversations_snoozed" in plan
        assert "Seq Scan on conversations" not in plan


def test_the_api_snoozes_wakes_and_filters(api: Api, contact_id: str, channel_id: str) -> None:
    receive(api.workspace_id, contact_id, channel_id)
    conversation_id = one("SELECT id FROM conversations")
    path = f"conversations/{conversation_id}"
    api.done(api.patch(path, {"snoozed_until": UNTIL.isoformat()}))

    assert api.get(path).json["data"]["snoozed_until"].startswith(f"{UNTIL:%Y-%m-%dT%H:%M:%S}")
    found = {value: len(api.get(f"conversations?snoozed={value}").json["data"]) for value in ("true", "false")}
    assert found == {"true": 1, "false": 0}
    api.done(api.patch(path, {"snoozed_until": None}))
    assert (snoozed(), told(api.workspace_id)) == ([None], ["snoozed", "woken"])


@pytest.mark.parametrize("days", [-1, 366])
def test_a_time_that_has_passed_or_is_too_far_away_is_refused(
    api: Api, contact_id: str, channel_id: str, days: int
) -> None:
    receive(api.workspace_id, contact_id, channel_id)
    until = datetime.now(UTC) + timedelta(days=days)

    refused = api.patch(f"conversations/{one('SELECT id FROM conversations')}", {"snoozed_until": until.isoformat()})

    assert (refused.status_code, refused.json["errors"][0]["pointer"]) == (422, "/snoozed_until")
