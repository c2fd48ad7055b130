"""Counting the inbox: a report says what a plain recount of the history says, however it was counted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from app import database
from app.database import DatabaseAway, rows
from app.domain.insight import figures
from app.domain.people import workspaces
from app.domain.reports import counting, reports
from app.domain.reports.periods import Period
from app.domain.reports.reports import Figures
from app.domain.retention import delete_old
from tests.cast import Api, all_of, elsewhere, in_threads, one
from tests.inbox_histories import BEGIN, Cast, Counted, Said, Talk, drawn, exact_quantile, recount, store, total
from tests.talks import close, make_channel, receive

DAYS, FIRST = 12, date(2026, 3, 22)
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia")


def cast_of(name: str) -> Cast:
    workspace_id = workspaces.create(name)[0].id
    return Cast(workspace_id, [make_channel(workspace_id) for _ in range(2)], [f"mem_{name}_1", f"mem_{name}_2"])


def agrees(found: Figures | None, counted: Counted) -> None:
    """The figures are those of the recount, durations within 5 %."""
    found = found or Figures()
    durations = {name: counted.pop(name) for name in ("answer_time", "resolution_time")}
    assert {name: number for name, number in found.counts.items() if number} == counted
    for name, seconds in durations.items():
        assert sum(found.histograms[name].values()) == len(seconds)
        for share in (0.5, 0.9):
            expected = exact_quantile(seconds, share)
            assert found.seconds(name, share) == (pytest.approx(expected, rel=0.05, abs=1) if seconds else None)


def agree_in_all(cast: Cast, talks: list[Talk], period: Period) -> None:
    """All that is read of the period is what a recount says."""
    mine = [talk for talk in talks if talk.workspace_id == cast.workspace_id]
    # An hour belongs to the day in which it begins.
    since, until = (
        at + (datetime.min.replace(tzinfo=UTC) - at) % timedelta(hours=1) for at in (period.since, period.until)
    )
    report = reports.read(cast.workspace_id, period)
    agrees(report.total, recount(mine, since, until, lambda *_: True))
    before = reports.read(cast.workspace_id, period.before).total
    assert (report.before.counts, report.before.histograms) == (before.counts, before.histograms)

    by_channel, rest = reports.by(cast.workspace_id, "channel", period)
    assert rest is None
    for channel_id in cast.channels:
        agrees(
            by_channel.get(channel_id),
            recount(mine, since, until, lambda talk, _, id=channel_id: talk.channel_id == id),
        )

    by_label, _ = reports.by(cast.workspace_id, "label", period)
    for label in cast.labels:
        counted = recount(mine, since, until, lambda talk, _, label=label: label in talk.labels)
        agrees(
            by_label.get(label), {name: each for name, each in counted.items() if name not in ("opened", "reopened")}
        )

    by_member, _ = reports.by(cast.workspace_id, "member", period)
    for member_id in cast.members:
        agrees(by_member.get(member_id), recount(mine, since, until, lambda _, member, id=member_id: member == id))


@pytest.fixture
def random_history(request: pytest.FixtureRequest, from_the_beginning: None) -> tuple[Random, list[Cast], list[Talk]]:
    random, casts = Random(request.param), [cast_of("a"), cast_of("b")]
    talks = [talk for cast in casts for talk in drawn(random, cast, BEGIN, DAYS)]
    store(talks)
    return random, casts, talks


def count_in_parts(random: Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts up to moments of any distance, in parts of any size."""
    end = BEGIN + timedelta(days=DAYS + 1)
    for moment in [*sorted(BEGIN + random.random() * (end - BEGIN) for _ in range(12)), end]:
        monkeypatch.setattr(figures, "settled", lambda moment=moment: moment)
        monkeypatch.setattr(counting, "PART", random.choice([1, 5, 1_000]))
        count_all(counting.count_up)


def count_all(count_up: Callable[[], int]) -> None:
    while count_up():
        pass


@pytest.mark.parametrize("random_history", range(4), indirect=True)
def test_every_figure_is_that_of_a_recount_in_every_zone(
    random_history: tuple[Random, list[Cast], list[Talk]], monkeypatch: pytest.MonkeyPatch
) -> None:
    random, casts, talks = random_history

    count_in_parts(random, monkeypatch)

    for zone in ZONES:
        first = FIRST + timedelta(days=random.randint(0, 6))
        last = first + timedelta(days=random.randint(0, 5))
        for cast in casts:
            agree_in_all(cast, talks, Period(first, last, ZoneInfo(zone)))
    assert one("SELECT count(*) FROM conversation_transitions") == 0


@pytest.mark.parametrize("random_history", [7], indirect=True)
def test_nothing_is_lost_or_doubled_when_it_is_killed_in_the_middle(
    random_history: tuple[Random, list[Cast], list[Talk]], monkeypatch: pytest.MonkeyPatch
) -> None:
    random, casts, talks = random_history
    monkeypatch.setattr(counting, "PART", 20)
    monkeypatch.setattr(figures, "settled", lambda: BEGIN + timedelta(days=DAYS + 1))
    killed = 0
    for step in ("_openings", "_add", "_keep", "count"):
        monkeypatch.setattr(counting, step, dying(random, getattr(counting, step)))

    for _ in range(500):
        try:
            if not counting.count_up():
                break
        except DatabaseAway:
            killed += 1

    assert killed > 3
    agree_in_all(casts[0], talks, Period(FIRST, FIRST + timedelta(days=DAYS), ZoneInfo("UTC")))


def dying(random: Random, step: Callable[..., object]) -> Callable[..., object]:
    """The step, which now and then loses its connection when it is done."""

    def done(*arguments: object) -> object:
        found = step(*arguments)
        if database.database.in_transaction() and random.random() < 0.1:
            rows("SELECT pg_terminate_backend(pg_backend_pid())")
        return found

    return done


def test_counting_again_or_side_by_side_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cast = cast_of("a")
    talks = drawn(Random(1), cast, BEGIN, DAYS)
    store(talks)
    monkeypatch.setattr(figures, "settled", lambda: BEGIN + timedelta(days=DAYS + 1))
    monkeypatch.setattr(counting, "PART", 30)

    in_threads([lambda: count_all(counting.count_up)] * 4)
    count_all(counting.count_up)

    agree_in_all(cast, talks, Period(FIRST, FIRST + timedelta(days=DAYS), ZoneInfo("UTC")))


def test_what_commits_late_is_not_missed(api: Api, today: Period) -> None:
    contact_id, channel_id = api.contact(external_id="ada")["id"], make_channel(api.workspace_id)

    def write_elsewhere() -> None:
        at = database.now()
        store([Talk(api.workspace_id, channel_id, [], messages=[Said(at, at, "contact")])])

    with elsewhere(write_elsewhere):
        receive(api.workspace_id, contact_id, channel_id)
        for _ in range(3):
            counting.count_up()

    assert total(api, today)["received"] == 2


def test_a_month_has_a_bounded_number_of_values(api: Api, today: Period, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_VALUES", 3)
    channel_id = make_channel(api.workspace_id)
    for number in range(6):
        contact_id = api.contact(external_id=f"c-{number}")["id"]
        conversation_id = receive(api.workspace_id, contact_id, channel_id).conversation_id
        api.done(api.patch(f"conversations/{conversation_id}", {"labels": [f"label {number}"]}))
        counting.count_up()
        assert one("SELECT count(*) FROM inbox_figure_values WHERE dimension = 'label'") <= 3

    found, rest = reports.by(api.workspace_id, "label", today)

    assert [each.counts["received"] for each in found.values()] == [1, 1, 1]
    assert rest is not None
    assert rest.counts["received"] == 3


def test_what_is_old_is_forgotten(api: Api, talk: tuple[str, str], today: Period) -> None:
    close(api.workspace_id, talk[0])
    counting.count_up()
    assert delete_old("old_figures_of_inbox") == 0

    rows("UPDATE inbox_figures SET starts_at = starts_at - %s", (counting.KEPT + timedelta(days=32),))
    rows("UPDATE inbox_figure_values SET month = month - %s", (counting.KEPT + timedelta(days=32),))
    rows("UPDATE conversation_openings SET closed_at = closed_at - %s", (counting.CLOSED_KEPT,))
    while delete_old("old_figures_of_inbox", 5):
        pass

    tables = ("inbox_figures", "inbox_figure_values", "conversation_openings")
    assert [one(f"SELECT count(*) FROM {table}") for table in tables] == [0, 0, 0]


def test_figures_begin_with_the_first_pass(api: Api) -> None:
    rows("DELETE FROM inbox_figure_progress")

    counting.count_up()

    assert all_of("SELECT begun_at <= now() FROM inbox_figure_progress") == [True]
