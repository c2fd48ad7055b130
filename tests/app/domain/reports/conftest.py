"""Figures of the inbox in tests: counted up to this moment, from the day of the tests on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.database import rows
from app.domain.insight import figures
from app.domain.reports.periods import Period
from tests.cast import Api
from tests.inbox_histories import BEGIN
from tests.talks import make_channel, receive


@pytest.fixture(autouse=True)
def from_the_beginning(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "LAG_SECONDS", 0.0)
    rows("INSERT INTO inbox_figure_progress VALUES (true, %s, %s)", (BEGIN - timedelta(days=100), BEGIN))


@pytest.fixture
def today(from_the_beginning: None) -> Period:
    rows("UPDATE inbox_figure_progress SET counted_until = now()")
    day = datetime.now(UTC).date()
    return Period(day - timedelta(days=1), day + timedelta(days=1), ZoneInfo("UTC"))


@pytest.fixture
def talk(api: Api, today: Period) -> tuple[str, str]:
    """A contact who has written, and the channel."""
    contact_id, channel_id = api.contact(external_id="ada")["id"], make_channel(api.workspace_id)
    receive(api.workspace_id, contact_id, channel_id)
    return contact_id, channel_id
