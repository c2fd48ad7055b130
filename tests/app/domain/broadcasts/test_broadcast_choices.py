"""Choices: whom a broadcast is for, when each contact is due, and who would be left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.database import count, rows
from app.domain.broadcasts import broadcast_batches, broadcast_choices
from app.lib import clock
from tests.broadcasting import EVERYBODY, begin, later, outcomes, people, shown, work
from tests.cast import Api, one
from tests.talks import make_channel, receive

AT_NINE = datetime(2026, 11, 26, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("time_zone", "own_zone", "expected"),
    [
        ("workspace", "Europe/Berlin", AT_NINE),
        ("contact", None, AT_NINE - timedelta(hours=14)),
        ("contact", "Europe/Berlin", AT_NINE - timedelta(hours=13)),
    ],
)
def test_by_contacts_clocks_it_starts_where_the_day_begins(
    time_zone: str, own_zone: str | None, expected: datetime
) -> None:
    assert broadcast_choices.starts_at(AT_NINE, time_zone, own_zone) == expected
    assert broadcast_choices.starts_at(None, "workspace", own_zone) is None


def test_each_has_its_turn_when_its_own_clock_shows_the_time(api: Api) -> None:
    make_channel(api.workspace_id)
    zones = ["Pacific/Auckland", "Etc/GMT-1", "America/New_York", None]
    found = [
        api.contact(phone=f"+493055555{number}", **({"timezone": zone} if zone else {}))["id"]
        for number, zone in enumerate(zones)
    ]
    send_at = clock.now().replace(microsecond=0) + timedelta(hours=2)
    broadcast_id = begin(api.workspace_id, send_at=send_at.isoformat(), time_zone="contact")

    work(broadcast_id)  # the first clocks have shown that time already

    assert outcomes(broadcast_id) == {found[0]: "sent"}
    parts = rows("SELECT due_at, contact_ids FROM broadcast_parts ORDER BY due_at")
    assert [ids for _, ids in parts] == [[found[1]], [found[3]], [found[2]]]
    assert parts[1][0] == send_at
    later(broadcast_id, 24 * 3_600)
    assert set(outcomes(broadcast_id)) == set(found)


def test_a_large_choice_is_written_down_in_slices(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast_choices, "SLICE_SECONDS", 0)
    monkeypatch.setattr(broadcast_choices, "PART", 2)
    monkeypatch.setattr("app.domain.segments.scans._FIRST_ROWS", 2)
    make_channel(api.workspace_id)
    found = people(api, 5)
    broadcast_id = begin(api.workspace_id)
    seen = []
    write_down = broadcast_choices.write_down

    def watch(broadcast: broadcast_choices.Broadcast) -> tuple[int, str | None]:
        seen.append(result := write_down(broadcast))
        return result

    monkeypatch.setattr(broadcast_batches.broadcast_choices, "write_down", watch)
    work(broadcast_id)

    assert seen == [(2, found[1]), (2, found[3]), (1, None)]
    assert shown(broadcast_id).count == 5
    assert outcomes(broadcast_id) == dict.fromkeys(found, "sent")


def test_a_preview_says_who_would_be_left_out(api: Api) -> None:
    channel_id = make_channel(api.workspace_id)
    count("UPDATE channels SET kind = 'whatsapp'")
    opted_out, closed, open_ = people(api, 3)
    nowhere = api.contact(email="ada@example.com")["id"]
    api.done(api.patch(f"contacts/{opted_out}", {"opted_out": True}))
    message = receive(api.workspace_id, open_, channel_id)
    count(
        "UPDATE conversations SET peer = '1', window_ends_at = now() + interval '1 hour' WHERE id = %s",
        (message.conversation_id,),
    )

    text = broadcast_choices.preview(api.workspace_id, EVERYBODY, {"message": {"text": "Hello"}})
    template = broadcast_choices.preview(api.workspace_id, EVERYBODY, {"message": {"template": {"name": "sale"}}})
    start = broadcast_choices.preview(api.workspace_id, EVERYBODY, {"automation_id": "aut_1"})

    assert (text.count, text.looked_at, text.is_complete) == (1, 4, True)
    assert text.left_out == {"no_channel": 1, "opted_out": 1, "window_closed": 1}
    assert (template.count, template.left_out) == (2, {"no_channel": 1, "opted_out": 1})
    assert (start.count, start.left_out) == (3, {"opted_out": 1})
    assert [each.id for each in text.sample] == [nowhere, open_, closed, opted_out]

    work(broadcast_id := begin(api.workspace_id))
    assert outcomes(broadcast_id) == {
        opted_out: "opted_out",
        closed: "window_closed",
        open_: "sent",
        nowhere: "no_channel",
    }


def test_a_preview_that_has_no_time_says_so(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broadcast_choices, "MOST_LOOKED_AT_SECONDS", -1)
    people(api, 2)

    found = broadcast_choices.preview(api.workspace_id, EVERYBODY, {"message": {"text": "Hello"}})

    assert (found.count, found.looked_at, found.left_out) == (2, 0, {})
    assert one("SELECT count(*) FROM broadcasts") == 0
