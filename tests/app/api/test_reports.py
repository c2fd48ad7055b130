"""Reports over the API: their days and zone, what they say of what happened, and who may ask."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from app.database import rows
from app.domain.insight import figures
from app.domain.reports import counting
from tests.cast import Api
from tests.talks import close, make_channel, make_member, receive, write

ADDRESS = "reports/conversations"


@pytest.fixture(autouse=True)
def counted_at_once(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "LAG_SECONDS", 0.0)
    rows("INSERT INTO inbox_figure_progress VALUES (true, now() - interval '300 days', now())")


@pytest.fixture
def channel_id(api: Api) -> str:
    return make_channel(api.workspace_id)


@pytest.fixture
def member_id(api: Api, channel_id: str) -> str:
    """A member who has answered a contact, whose conversation was closed."""
    contact_id, member_id = api.contact(external_id="ada")["id"], make_member(api.workspace_id)
    receive(api.workspace_id, contact_id, channel_id)
    write(api.workspace_id, contact_id, member_id)
    rows("UPDATE messages SET status = 'sent' WHERE direction = 'out'")
    close(api.workspace_id, contact_id)
    counting.count_up()
    return member_id


def report(api: Api, query: str = "") -> dict[str, Any]:
    response = api.get(f"{ADDRESS}{query}")
    assert response.status_code == 200, response.text
    return dict(response.json["data"])


def test_it_is_about_thirty_days_of_the_workspace_by_default(api: Api, member_id: str) -> None:
    found = report(api)

    assert (found["last_day"], found["time_zone"], found["step"]) == (
        datetime.now(UTC).date().isoformat(),
        "UTC",
        "day",
    )
    assert len(found["steps"]) == 30
    counts = {name: value for name, value in found["total"].items() if isinstance(value, int)}
    counted = {"received": 1, "sent": 1, "sent_by_programs": 0, "opened": 1, "reopened": 0, "answered": 1, "closed": 1}
    assert counts == counted
    assert found["total"]["first_answer"]["median"] < 60
    assert found["before"]["received"] == 0
    assert [hour["received"] for hour in found["hours_of_week"]] == [1]
    assert (found["groups"], found["others"]) == (None, None)


def test_groups_are_what_was_asked_for(api: Api, channel_id: str, member_id: str) -> None:
    [by_channel], [by_member] = (report(api, f"?by={name}")["groups"] for name in ("channel", "member"))

    assert (by_channel["value"], by_channel["opened"]) == (channel_id, 1)
    assert (by_member["value"], by_member["sent"], by_member["answered"]) == (member_id, 1, 1)
    assert "received" not in by_member
    assert report(api, "?by=label")["groups"] == []


@pytest.mark.parametrize(
    ("days", "step", "steps"),
    [
        ("first_day=2026-10-24&last_day=2026-10-25", "hour", 49),
        ("first_day=2026-10-01&last_day=2026-10-31", "day", 31),
        ("first_day=2026-09-01&last_day=2026-11-30", "week", 14),
        ("first_day=2026-01-15&last_day=2026-12-14", "month", 12),
    ],
)
def test_its_steps_are_those_of_its_zone(api: Api, days: str, step: str, steps: int) -> None:
    found = report(api, f"?{days}&time_zone=Europe/Berlin")

    assert (found["step"], len(found["steps"])) == (step, steps)
    assert found["steps"][0]["starts_at"].endswith("T22:00:00.000Z" if step != "month" else "T23:00:00.000Z")


def test_figures_that_do_not_reach_back_are_not_compared(api: Api, member_id: str) -> None:
    rows("UPDATE inbox_figure_progress SET begun_at = now()")

    assert report(api)["before"] is None


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("?first_day=2026-13-01", "/first_day"),
        ("?first_day=2026-03-02&last_day=2026-03-01", "/last_day"),
        ("?first_day=2024-01-01", "/first_day"),
        ("?last_day=20260301", "/last_day"),
        ("?time_zone=Atlantis", "/time_zone"),
    ],
)
def test_what_makes_no_sense_is_refused(api: Api, query: str, pointer: str) -> None:
    response = api.get(f"{ADDRESS}{query}")

    assert response.status_code == 422
    assert [error["pointer"] for error in response.json["errors"]] == [pointer]


def test_another_workspace_has_its_own(api: Api, others: Api, member_id: str) -> None:
    assert report(others)["total"]["received"] == 0
