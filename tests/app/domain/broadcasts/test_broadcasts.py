"""Broadcasts: scheduled, changed, begun and ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from app.database import count
from app.domain.broadcasts import broadcasts
from app.lib import clock
from tests.broadcasting import EVERYBODY, begin, later, move, outcomes, people, shown, work
from tests.cast import Api, one
from tests.talks import make_channel

TAGGED = {"field": "contact.tags", "is": "contains", "value": "vip"}


def tomorrow() -> str:
    return (clock.now() + timedelta(days=1)).isoformat()


def make_segment(api: Api, condition: dict[str, Any]) -> str:
    return str(api.done(api.post("segments", {"name": "Regulars", "filter": condition}))["resource"]["id"])


def test_a_scheduled_one_is_for_its_segment_as_that_is_when_it_starts(api: Api) -> None:
    make_channel(api.workspace_id)
    ada, _ = people(api, 2)
    api.done(api.post(f"contacts/{ada}/tags", {"name": "vip"}))
    segment_id = make_segment(api, EVERYBODY)
    broadcast_id = begin(api.workspace_id, segment_id=segment_id, send_at=tomorrow())

    scheduled = work(broadcast_id)
    assert (scheduled.state, scheduled.filter, scheduled.started_at) == ("scheduled", None, None)
    api.done(api.patch(f"segments/{segment_id}", {"filter": TAGGED}))
    started = later(broadcast_id, 25 * 3_600)

    assert (started.filter, outcomes(broadcast_id)) == (TAGGED, {ada: "sent"})


def test_its_segment_cannot_be_deleted_before_it_starts(api: Api) -> None:
    segment_id = make_segment(api, EVERYBODY)
    broadcast_id = begin(api.workspace_id, segment_id=segment_id, send_at=tomorrow())

    job = api.done(api.delete(f"segments/{segment_id}"))

    assert job["problem"]["detail"] == "The broadcast 'Sale' is scheduled for this segment. Change or abort it first."
    assert job["problem"]["conflicting_broadcast_id"] == broadcast_id
    assert move(broadcast_id, "abort") is None
    assert api.done(api.delete(f"segments/{segment_id}"))["status"] == "succeeded"


def test_a_scheduled_one_can_be_changed(api: Api) -> None:
    make_channel(api.workspace_id)
    [ada] = people(api, 1)
    segment_id = make_segment(api, TAGGED)
    broadcast_id = begin(api.workspace_id, segment_id=segment_id, send_at=tomorrow())
    automation_id = api.published({"id": "end", "kind": "stop"})

    assert move(broadcast_id, "update", {"name": "Later", "filter": EVERYBODY}) is None
    assert move(broadcast_id, "update", {"automation_id": automation_id}) is None
    changed = shown(broadcast_id)
    assert (changed.name, changed.segment_id, changed.filter) == ("Later", None, EVERYBODY)
    assert (changed.message, changed.automation_id) == (None, automation_id)

    assert move(broadcast_id, "update", {"message": {"text": "Now"}, "send_at": None}) is None
    work(broadcast_id)
    assert outcomes(broadcast_id) == {ada: "sent"}
    problem = move(broadcast_id, "update", {"name": "Too late"})
    assert problem is not None
    assert problem["detail"] == "Only a scheduled broadcast can be changed; this one is running."


def test_files_are_kept_for_as_long_as_the_broadcast_needs_them(api: Api) -> None:
    make_channel(api.workspace_id)
    people(api, 2)
    first, second = (
        api.post("uploads", data=b"%PDF-1.4 " + name, headers={"Content-Type": "application/pdf"}).json["data"]["id"]
        for name in (b"one", b"two")
    )
    attached = {"message": {"attachments": [{"upload_id": first}]}}
    broadcast_id = begin(api.workspace_id, send_at=tomorrow(), **attached)
    assert one("SELECT expires_at FROM uploads WHERE id = %s", first) is None

    assert move(broadcast_id, "update", {"message": {"attachments": [{"upload_id": second}]}}) is None
    assert one("SELECT expires_at <= now() FROM uploads WHERE id = %s", first)
    later(broadcast_id, 25 * 3_600)

    assert one("SELECT count(*) FROM messages WHERE attachments->0->>'id' = %s", second) == 2
    assert one("SELECT was_sent FROM uploads WHERE id = %s", second)


def test_a_workspace_has_a_bounded_number_at_once(api: Api) -> None:
    for _ in range(2):
        begin(api.workspace_id, send_at=tomorrow())
    payload = {"name": "Sale", "filter": EVERYBODY, "message": {"text": "Hello"}}
    most, broadcasts.MOST_UNFINISHED = broadcasts.MOST_UNFINISHED, 2
    try:
        job = api.done(api.post("broadcasts", payload))
    finally:
        broadcasts.MOST_UNFINISHED = most

    assert job["problem"]["status"] == 409


def test_what_people_do_is_in_the_audit_log_without_the_text(api: Api) -> None:
    make_channel(api.workspace_id)
    broadcast_id = begin(api.workspace_id, send_at=tomorrow())
    move(broadcast_id, "update", {"name": "Other"})
    move(broadcast_id, "abort")

    actions = "SELECT string_agg(action, ' ' ORDER BY id) FROM audit_entries WHERE target_id = %s"
    assert one(actions, broadcast_id) == "broadcasts.create broadcasts.update broadcasts.abort"
    assert "Hello" not in one("SELECT string_agg(detail::text, '') FROM audit_entries")


def test_a_deleted_segment_pauses_one_that_starts(api: Api) -> None:
    segment_id = make_segment(api, EVERYBODY)
    broadcast_id = begin(api.workspace_id, segment_id=segment_id, send_at=tomorrow())
    count("DELETE FROM segments")

    assert later(broadcast_id, 25 * 3_600).problem == "Its segment has been deleted."
