"""The page of reports: what it shows of the days that are chosen, its tables as files, and who may see it."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta

import pytest

from app.database import rows
from app.domain.insight import figures
from app.domain.reports import counting
from app.web.formats import NOTHING
from app.web.reports.report_charts import spelled
from tests.cast import Api
from tests.pages import Person
from tests.talks import close, make_channel, make_member, receive, write

HOSTILE = "=1+1<script>"


@pytest.fixture(autouse=True)
def counted_at_once(empty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "LAG_SECONDS", 0.0)
    rows("INSERT INTO inbox_figure_progress VALUES (true, now() - interval '300 days', now())")


@pytest.fixture
def member_id(api: Api) -> str:
    """A member who has answered a contact and closed the conversation, which has two labels."""
    contact_id, member_id = api.contact(external_id="ada")["id"], make_member(api.workspace_id)
    conversation_id = receive(api.workspace_id, contact_id, make_channel(api.workspace_id)).conversation_id
    fields = {"labels": [HOSTILE, "refund"], "assignee_id": member_id}
    job = api.done(api.patch(f"conversations/{conversation_id}", fields))
    assert job["status"] == "succeeded", job
    write(api.workspace_id, contact_id, member_id)
    rows("UPDATE messages SET status = 'sent' WHERE direction = 'out'")
    close(api.workspace_id, contact_id)
    counting.count_up()
    return member_id


def cards(page: str) -> dict[str, str]:
    found = re.findall(
        r'<li class="card"><span class="muted">([^<]+)</span> <strong class="big">([^<]+)</strong>', page
    )
    return dict(found)


def table(person: Person, query: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(person.page(f"reports?format=csv&{query}"))))


def test_the_sums_of_the_days_are_at_the_top(agent: Person, member_id: str) -> None:
    page = agent.page("reports")

    found = cards(page)
    assert {name: found[name] for name in ("Messages in", "Messages out", "Conversations closed")} == {
        "Messages in": "1",
        "Messages out": "1",
        "Conversations closed": "1",
    }
    assert {"First answer", "Resolution"} <= found.keys()
    assert page.count("none before") >= 4
    assert page.count('<svg class="chart"') == 4
    assert page.count('class="shade-7"') == 1


@pytest.mark.parametrize("preset", ["today", "7d", "90d", "month"])
def test_presets_choose_days(agent: Person, member_id: str, preset: str) -> None:
    assert cards(agent.page(f"reports?range={preset}"))["Messages in"] == "1"


@pytest.mark.parametrize("query", ["range=yesterday", "first_day=2026-01-01&last_day=2026-02-01"])
def test_days_without_anything_say_so_and_lead_on(agent: Person, member_id: str, query: str) -> None:
    page = agent.page(f"reports?{query}")

    assert "Nothing happened in the inbox in these days." in page
    assert "range=90d" in page
    assert cards(page) == {}


def test_a_new_workspace_is_led_to_its_channels(agent: Person) -> None:
    assert "Connect a channel" in agent.page("reports?range=90d")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("first_day=yesterday", "Give a day such as 2026-11-21."),
        ("first_day=2026-02-30", "There is no such day."),
        ("first_day=2026-03-02&last_day=2026-03-01", "This must not be before first_day."),
        ("first_day=2024-01-01&last_day=2026-01-01", "A report is about 366 days at most."),
        ("zone=Atlantis", "There is no such time zone, so that of the workspace is used."),
    ],
)
def test_what_makes_no_sense_is_said_beside_its_field(agent: Person, query: str, said: str) -> None:
    page = agent.page(f"reports?{query}")

    assert said in page
    assert 'name="first_day"' in page


def test_days_are_those_of_the_zone_that_is_chosen(api: Api, agent: Person, member_id: str) -> None:
    rows("UPDATE workspaces SET timezone = 'Asia/Tokyo' WHERE id = %s", (api.workspace_id,))

    assert "those of Asia/Tokyo" in agent.page("reports")
    page = agent.page("reports?zone=America/New_York")
    assert "those of America/New_York" in page
    assert '<option value="America/New_York" selected>' in page


def test_a_table_is_sorted_by_its_links(api: Api, agent: Person, member_id: str) -> None:
    contact_id = api.contact(external_id="grace")["id"]
    for _ in range(3):
        receive(api.workspace_id, contact_id, make_channel(api.workspace_id))
    channel = make_channel(api.workspace_id)
    for _ in range(3):
        receive(api.workspace_id, contact_id, channel)
    counting.count_up()

    down = [row[2] for row in table(agent, "table=by&sort=received")[1:]]
    up = [row[2] for row in table(agent, "table=by&sort=received-up")[1:]]
    assert down == ["3", "1", "1", "1", "1"]
    assert up == down[::-1]
    assert 'aria-sort="descending"><a href="' in agent.page("reports?sort=received")
    assert "sort=received-up" in agent.page("reports?sort=received")


def test_members_are_named_unless_they_were_removed(api: Api, agent: Person, member_id: str) -> None:
    assert f"{member_id}@example.com" in agent.page("reports?by=member")

    rows("DELETE FROM members WHERE id = %s", (member_id,))

    assert "Removed member" in agent.page("reports?by=member")
    assert table(agent, "table=by&by=member")[1][:2] == [member_id, "Removed member"]


def test_labels_are_shown_as_text_and_are_no_formulas_in_files(agent: Person, member_id: str) -> None:
    assert "<bdi>=1+1&lt;script&gt;</bdi>" in agent.get("reports?by=label").text

    assert sorted(row[0] for row in table(agent, "table=by&by=label")[1:]) == [f"'{HOSTILE}", "refund"]


def test_each_table_is_a_file(agent: Person, member_id: str) -> None:
    over_time, week = table(agent, "table=time"), table(agent, "table=week")

    assert (len(over_time), len(week)) == (1 + 30, 1 + 168)
    assert over_time[0][:3] == ["from", "received", "sent"]
    assert over_time[-1][1:3] == ["1", "1"]
    assert sum(int(row[2]) for row in week[1:]) == 1
    assert agent.get("reports?format=json&table=week").json[0]["weekday"] == "Monday"


def test_a_page_takes_few_statements(agent: Person, member_id: str, statements: list[str]) -> None:
    agent.page("reports?by=member&first_day=2026-01-01&last_day=2026-12-31")

    assert len(statements) <= 12


def test_it_is_for_members_of_the_workspace_and_support(
    agent: Person, stranger: Person, support: Person, member_id: str
) -> None:
    assert stranger.get("reports").status_code == 404
    assert support.get("reports").status_code == 200
    assert "Reports" in agent.page("inbox")


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (None, NOTHING),
        (timedelta(), "under 1 s"),
        (timedelta(seconds=45), "45 s"),
        (timedelta(minutes=3, seconds=20), "3 min 20 s"),
        (timedelta(hours=1), "1 h"),
        (timedelta(hours=26, minutes=3), "1 d 2 h"),
    ],
)
def test_durations_have_two_units(duration: timedelta | None, text: str) -> None:
    assert spelled(None if duration is None else duration.total_seconds()) == text
