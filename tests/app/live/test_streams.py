"""What members hear of their workspace, live."""

from __future__ import annotations

from app.database import rows
from app.domain import messages, notifications
from app.lib import ids, json
from app.models.conversations import Message
from tests import talks
from tests.app.live.conftest import Listen
from tests.cast import Api, accept, one
from tests.listening import Ear, Heard
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


def test_nobody_hears_of_another_workspace(api: Api, others: Api, contact_id: str, listen: Listen) -> None:
    ours, theirs = listen(api), listen(others, "eve@example.com")
    talks.receive(api.workspace_id, contact_id, talks.make_channel(api.workspace_id))
    notifications.note(others.workspace_id, "usage_high", "x", USAGE)

    ours.until(lambda _: of(ours, "message"))
    theirs.until(lambda _: of(theirs, "notification"))
    assert {each.kind for each in theirs.heard} == {"notification"}
    assert of(ours, "notification") == []


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


def test_a_place_that_is_too_old_or_none_of_ours_is_reset(api: Api, listen: Listen) -> None:
    for number, place in enumerate(("1:1:", "nonsense", "9999999:9999999:")):
        rows("INSERT INTO updates_forgotten (until) VALUES ('2') ON CONFLICT DO NOTHING")
        ear = listen(api, f"{number}@shop.example", place)
        ear.until(lambda heard: [each.kind for each in heard] == ["reset"])
        notifications.note(api.workspace_id, "usage_high", str(number), USAGE)
        ear.until(lambda heard: [each.kind for each in heard] == ["reset", "notification"])
