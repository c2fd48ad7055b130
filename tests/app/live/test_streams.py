"""What members hear of their workspace, live."""

from __future__ import annotations

import threading
from contextlib import closing

import psycopg2
import pytest

from app.config import settings
from app.database import rows
from app.domain.conversations import messages
from app.domain.insight import updates
from app.domain.insight.updates import StreamPosition
from app.domain.people import notifications
from app.lib import ids, json
from app.live import places, resumptions
from app.live.listeners import Pass
from app.models.conversations import Message
from tests import talks
from tests.app.live.conftest import Listen
from tests.bounding import set_bound
from tests.cast import Api, accept, one
from tests.listening import Ear, Heard, an_hour_passes
from tests.people import make_member


def of(ear: Ear, kind: str) -> list[Heard]:
    return [each for each in ear.heard if each.kind == kind]


def test_a_member_hears_of_a_message_and_its_conversation_as_the_api_shows_them(
    api: Api, contact_id: str, listen: Listen
) -> None:
    ear = listen(api)
    made = talks.receive(
        api.workspace_id, contact_id, talks.make_channel(api.workspace_id), "Hello\n\nthere: 'ä' \u2028"
    )

    ear.until(lambda heard: {"message", "conversation"} <= {each.kind for each in heard})
    [message] = of(ear, "message")
    stored = Message.get_by_id(made.id)
    assert message.data == json.loads(json.dumps(messages.represent(stored)))
    assert of(ear, "conversation")[-1].data["id"] == made.conversation_id


def test_a_member_hears_of_a_note_and_that_it_is_deleted(api: Api, contact_id: str, listen: Listen) -> None:
    said = talks.receive(api.workspace_id, contact_id, talks.make_channel(api.workspace_id))
    ear = listen(api)
    note = talks.add_note(api, said.conversation_id, "Called.")
    shown = api.get(f"notes/{note}").json["data"]
    ear.until(lambda _: of(ear, "note"))
    api.done(api.delete(f"notes/{note}"))
    ear.until(lambda _: len(of(ear, "note")) == 2)

    assert [each.data for each in of(ear, "note")] == [shown, {"id": note, "deleted": True}]


def test_nobody_hears_of_another_workspace(api: Api, others: Api, contact_id: str, listen: Listen) -> None:
    ours, theirs = listen(api), listen(others, "eve@example.com")
    talks.receive(api.workspace_id, contact_id, talks.make_channel(api.workspace_id))
    notifications.note(others.workspace_id, "usage_high", "x", USAGE)

    ours.until(lambda _: of(ours, "message"))
    theirs.until(lambda _: of(theirs, "notification"))
    assert {each.kind for each in theirs.heard} == {"notification"}
    assert {each.data["kind"] for each in of(ours, "notification")} <= {"new_conversation"}


USAGE = {"meter": "contacts", "used": 81, "percent": 81, "included": 100}


def test_a_notification_is_a_sentence_with_the_page_about_it(api: Api, listen: Listen) -> None:
    ear = listen(api)
    notifications.note(api.workspace_id, "usage_high", "x", USAGE)

    [heard] = ear.until(lambda _: of(ear, "notification"))
    assert heard.data["text"].startswith("The workspace has used 81 contacts")
    assert heard.data["path"] == f"/workspaces/{api.workspace_id}/settings/billing"


def test_what_cannot_be_shown_ends_no_stream(api: Api, listen: Listen) -> None:
    ear = listen(api)
    notifications.note(api.workspace_id, "usage_high", "broken", {})
    notifications.note(api.workspace_id, "usage_high", "whole", USAGE)

    assert len(ear.until(lambda _: of(ear, "notification"))) == 1


def test_a_run_is_heard_of_with_each_state(api: Api, contact_id: str, listen: Listen) -> None:
    ear = listen(api)
    run_id = talks.make_run(api.workspace_id, contact_id)
    ear.until(lambda _: of(ear, "run"))
    rows("UPDATE runs SET status = 'completed' WHERE id = %s", (run_id,))

    ear.until(lambda _: [each.data["status"] for each in of(ear, "run")] == ["waiting", "completed"])


def test_members_hear_of_their_own_writes_only(api: Api, listen: Listen) -> None:
    ear, other = listen(api), listen(api, "other@shop.example")
    member_id = one(
        "SELECT members.id FROM members JOIN accounts ON accounts.id = account_id WHERE email = 'owner@shop.example'"
    )
    job = accept(api.workspace_id, "contacts.upsert", {"email": "ada@example.com"})
    rows("UPDATE jobs SET token_id = %s, status = 'succeeded' WHERE id = %s", (member_id, job.id))
    notifications.note(api.workspace_id, "usage_high", "behind", USAGE)

    for each in (ear, other):
        each.until(lambda _, each=each: of(each, "notification"))
    assert [each.data["id"] for each in of(ear, "job")] == [job.id]
    assert of(ear, "job")[0].data["status"] == "succeeded"
    assert of(other, "job") == []


def test_a_member_hears_of_their_own_mentions_only(api: Api, listen: Listen) -> None:
    ear, other = listen(api), listen(api, "other@shop.example")
    member_id = one(
        "SELECT members.id FROM members JOIN accounts ON accounts.id = account_id WHERE email = 'owner@shop.example'"
    )
    rows(
        "INSERT INTO notifications (id, workspace_id, member_id, kind, once, detail)"
        """ VALUES (%s, %s, %s, 'mentioned', 'x', '{"conversation_id": "cnv_1"}')""",
        (ids.new("ntf"), api.workspace_id, member_id),
    )
    notifications.note(api.workspace_id, "usage_high", "behind", USAGE)

    for each, kinds in ((ear, ["mentioned", "usage_high"]), (other, ["usage_high"])):
        each.until(lambda _, each=each, kinds=kinds: [one.data["kind"] for one in of(each, "notification")] == kinds)


def test_a_resource_that_changed_several_times_at_once_is_sent_once(api: Api, contact_id: str, listen: Listen) -> None:
    message = talks.receive(api.workspace_id, contact_id, talks.make_channel(api.workspace_id))
    ear = listen(api)
    rows(
        "UPDATE messages SET status = 'read' WHERE id = %(id)s; UPDATE messages SET text = 'New' WHERE id = %(id)s",
        {"id": message.id},
    )

    ear.until(lambda _: of(ear, "message"))
    assert [(each.data["status"], each.data["text"]) for each in of(ear, "message")] == [("read", "New")]


def test_a_listener_goes_on_behind_what_it_heard_last(api: Api, listen: Listen) -> None:
    ear = listen(api)
    notifications.note(api.workspace_id, "usage_high", "0", USAGE)
    ear.until(lambda heard: len(heard) == 1)
    ear.close()
    for number in range(1, 4):
        notifications.note(api.workspace_id, "usage_high", str(number), USAGE)
    ear.open()
    notifications.note(api.workspace_id, "usage_high", "4", USAGE)

    ear.until(lambda heard: len(heard) == 5)
    stored = [id for (id,) in rows("SELECT id FROM notifications ORDER BY once")]
    assert [each.data["id"] for each in ear.heard] == stored


def test_from_every_event_a_listener_hears_exactly_the_rest(api: Api, listen: Listen) -> None:
    ear = listen(api)
    _, member = make_member(api.workspace_id, "else@example.com")
    for number in range(6):
        rows(
            "INSERT INTO notifications (id, workspace_id, kind, once, detail) SELECT i, %s, 'usage_high', i, %s"
            " FROM unnest(%s::text[]) AS i",
            (api.workspace_id, json.dumps(USAGE).decode(), [ids.new("ntf") for _ in range(number)]),
        )
    ear.until(lambda heard: len(heard) == 15)
    assert member.id
    everything = [each.data["id"] for each in ear.heard]
    for position, heard in enumerate(ear.heard):
        again = Ear(ear.port, headers=ear.headers, place=heard.place).open()
        rest = everything[position + 1 :]
        again.until(lambda found, rest=rest: len(found) >= len(rest))
        assert [each.data["id"] for each in again.heard] == rest
        again.close()


def test_a_place_that_is_none_of_ours_is_reset(api: Api, listen: Listen) -> None:
    timeline = updates.present().timeline
    forged = places.seal(StreamPosition(timeline, "1:1:"), Pass(api.workspace_id, "mem_1"))
    for number, place in enumerate((f"{timeline};1:1:", "nonsense", f"{timeline};1:1:;1:1:;7", forged)):
        ear = listen(api, f"{number}@shop.example", place)
        ear.until(lambda heard: [each.kind for each in heard] == ["reset"])
        notifications.note(api.workspace_id, "usage_high", str(number), USAGE)
        ear.until(lambda heard: [each.kind for each in heard] == ["reset", "notification"])


def test_a_place_that_is_too_old_is_reset_once(api: Api, listen: Listen) -> None:
    ear = listen(api)
    ear.close()
    rows("INSERT INTO updates_forgotten (until) SELECT pg_current_xact_id()")
    ear.open().until(lambda heard: heard)
    notifications.note(api.workspace_id, "usage_high", "new", USAGE)

    ear.until(lambda heard: [each.kind for each in heard] == ["reset", "notification"])


def test_a_transaction_that_is_open_for_hours_costs_nobody_an_update(api: Api, listen: Listen) -> None:
    with closing(psycopg2.connect(settings().database_url)) as held:
        held.cursor().execute("SELECT pg_current_xact_id()")
        ear = listen(api)
        for number in range(3):
            notifications.note(api.workspace_id, "usage_high", str(number), USAGE)
            ear.until(lambda heard, number=number: len(heard) > number)
            an_hour_passes()
            updates.forget_old()
        ear.open()
        notifications.note(api.workspace_id, "usage_high", "last", USAGE)

        ear.until(lambda heard: len(heard) > 3)
    assert {each.kind for each in ear.heard} == {"notification"}


def test_an_outage_of_hours_is_one_reset(api: Api, listen: Listen) -> None:
    ear = listen(api)
    rows("INSERT INTO updates_forgotten (until) SELECT pg_current_xact_id()")
    ear.until(lambda heard: heard)
    notifications.note(api.workspace_id, "usage_high", "new", USAGE)

    ear.until(lambda heard: [each.kind for each in heard] == ["reset", "notification"])


def test_a_place_of_another_listener_is_reset(api: Api, listen: Listen) -> None:
    ear, other = listen(api), listen(api, "other@shop.example")
    for each in (ear, other):
        each.close()
    ear.place, other.place = other.place, ear.place

    for each in (ear, other):
        each.open().until(lambda heard: [one.kind for one in heard] == ["reset"])


def test_a_place_is_good_for_as_long_as_its_key(api: Api, listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    ear = listen(api)
    ear.close()
    ours, theirs = list(places._keys()), Ear(ear.port, headers=ear.headers, place=ear.place)
    notifications.note(api.workspace_id, "usage_high", "missed", USAGE)

    monkeypatch.setattr(places, "_keys", lambda: [b"newer", *ours])
    ear.open().until(lambda heard: [each.kind for each in heard] == ["notification"])
    monkeypatch.setattr(places, "_keys", lambda: [b"newer"])
    theirs.open().until(lambda heard: [each.kind for each in heard] == ["reset"])
    theirs.close()


def test_who_has_missed_too_much_is_reset(api: Api, listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    set_bound(monkeypatch, "LIVE_RESUMED", 2)
    ear = listen(api)
    ear.close()
    for number in range(3):
        notifications.note(api.workspace_id, "usage_high", str(number), USAGE)
    ear.open().until(lambda heard: [each.kind for each in heard] == ["reset"])

    notifications.note(api.workspace_id, "usage_high", "new", USAGE)
    ear.until(lambda heard: [each.kind for each in heard] == ["reset", "notification"])


def test_what_was_missed_comes_in_pages_and_once_while_more_happens(
    api: Api, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumptions, "PAGE", 2)
    ear = listen(api)
    ear.close()
    ears = [Ear(ear.port, headers=ear.headers, place=ear.place) for _ in range(5)]
    for number in range(30):
        notifications.note(api.workspace_id, "usage_high", f"{number:02}", USAGE)
        if number % 6 == 5:
            ears[number // 6].open()

    stored = [id for (id,) in rows("SELECT id FROM notifications ORDER BY once")]
    for each in ears:
        each.until(lambda heard: len(heard) >= len(stored))
        assert [heard.data["id"] for heard in each.heard] == stored
        each.close()


def test_a_listener_that_comes_back_does_not_delay_what_happens_now(
    api: Api, others: Api, listen: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, ear = listen(api), listen(others, "eve@example.com")
    late.close()
    notifications.note(api.workspace_id, "usage_high", "missed", USAGE)
    is_over, missed = threading.Event(), resumptions._missed
    monkeypatch.setattr(resumptions, "_missed", lambda *given: is_over.wait(20) and missed(*given))
    late.open()
    notifications.note(others.workspace_id, "usage_high", "now", USAGE)
    ear.until(lambda _: of(ear, "notification"))
    assert late.listen().heard == []

    is_over.set()
    late.until(lambda heard: [each.kind for each in heard] == ["notification"])


def test_a_listener_that_leaves_while_it_is_sent_what_it_missed_hurts_nobody(api: Api, listen: Listen) -> None:
    ear = listen(api)
    ear.close()
    notifications.note(api.workspace_id, "usage_high", "missed", USAGE)
    for _ in range(20):
        Ear(ear.port, headers=ear.headers, place=ear.place).open().close()

    ear.open().until(lambda heard: [each.kind for each in heard] == ["notification"])
