from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.config import settings
from app.database import rows, transaction
from app.domain.billing import usage_warnings
from app.domain.billing.months import Month
from app.domain.people import conversation_notifications, members, notifications, workspaces
from app.domain.retention import delete_old
from app.domain.work.units import Unit
from app.lib import clock, ids
from app.models import sets
from app.models.endpoints import Endpoint
from app.models.members import Member
from app.models.notes import Note
from app.models.notifications import Notification
from tests.cast import Api, all_of, in_threads, make_endpoint, one
from tests.conftest import Keys
from tests.people import make_account, make_member
from tests.sending import GONE, attempt


@pytest.fixture
def smtp(empty: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """E-mail can be sent."""
    monkeypatch.setenv("SMTP_URL", "smtp://127.0.0.1:1")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def note(workspace_id: str, once: str = "one") -> bool:
    detail = {"import_id": once, "total": 3, "done": 2, "failed": 1}
    return notifications.note(workspace_id, "import_ended", once, detail)


def of(workspace_id: str) -> list[Notification]:
    return list(Notification.in_workspace(workspace_id).order_by(Notification.id))


def test_a_workspace_is_notified_once_of_one_thing(api: Api, others: Api) -> None:
    assert note(api.workspace_id)
    assert not note(api.workspace_id)
    assert note(others.workspace_id)
    assert in_threads([lambda: note(api.workspace_id, "two")] * 4).count(True) == 1

    assert [each.once for each in of(api.workspace_id)] == ["one", "two"]


def test_a_stopped_endpoint_is_notified_of(api: Api) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, "https://shop.example/hooks")
    api.contact(external_id="one")
    attempt(Endpoint.get_by_id(endpoint_id), GONE)

    [found] = of(api.workspace_id)
    assert found.kind == "endpoint_stopped"
    assert found.detail["endpoint_id"] == endpoint_id
    assert notifications.headline(found.kind, found.detail) == (
        "The webhook endpoint https://shop.example/hooks was stopped. The receiver answered 410 Gone."
    )
    assert notifications.path(found) == f"/workspaces/{api.workspace_id}/dashboard/endpoints/{endpoint_id}"


def test_an_import_that_ended_is_notified_of(api: Api) -> None:
    body = b'{"email": "ada@example.com"}\n{"email": "x"}'
    import_id = api.done(api.post("contacts/import", data=body, content_type="application/jsonl"))["resource"]["id"]

    [found] = of(api.workspace_id)
    assert (found.kind, found.detail) == ("import_ended", {"import_id": import_id, "total": 2, "done": 1, "failed": 1})
    assert notifications.headline(found.kind, found.detail) == (
        "An import of contacts ended: 1 of 2 lines were imported; 1 failed."
    )


def newest_of(api: Api, member_id: str | None, last_id: str | None = None, limit: int = 10) -> list[Notification]:
    return Notification.newest(api.workspace_id, member_id, last_id, limit, kinds=notifications.NAMES)


def mention(member: Member, number: int = 1) -> None:
    """A note mentions the member."""
    made = {"workspace_id": member.workspace_id, "conversation_id": "cnv_1", "contact_id": "con_1"}
    note = Note(id=f"nte_{number}", **made)
    with transaction():
        unit = Unit()
        unit.read([sets.key(Note, member.workspace_id, "id", note.id)])
        conversation_notifications.mentioned(unit, note, member.id)
        unit.write()


def use(workspace_id: str, meter: str, amount: int) -> None:
    month = Month.of(clock.now())
    rows(
        "INSERT INTO usage_days (workspace_id, day, meter, amount) VALUES (%s, %s, %s, %s)",
        (workspace_id, month.first, meter, amount),
    )


def test_a_workspace_is_warned_at_eighty_percent_once_a_month(one_day: None, api: Api, others: Api) -> None:
    use(api.workspace_id, "deliveries", 8_000)
    use(others.workspace_id, "deliveries", 7_999)

    assert usage_warnings.warn() == ("", 1)
    assert usage_warnings.warn() == ("", 0)

    [found] = of(api.workspace_id)
    assert found.kind == "usage_high"
    assert notifications.headline(found.kind, found.detail) == (
        "The workspace has used 8,000 deliveries this month, 80 % of the 10,000 that its plan includes."
    )
    assert of(others.workspace_id) == []


def test_warnings_go_through_the_workspaces_some_at_a_time(one_day: None, empty: None) -> None:
    workspace_ids = [workspaces.create("Shop")[0].id for _ in range(3)]
    for workspace_id in workspace_ids:
        use(workspace_id, "runs", 5_000)

    after, made = usage_warnings.warn(limit=2)
    assert (after, made) == (workspace_ids[1], 2)
    assert usage_warnings.warn(after, limit=2) == ("", 1)


def test_a_member_reads_up_to_what_they_have_seen(api: Api) -> None:
    _, ada = make_member(api.workspace_id)
    _, bob = make_member(api.workspace_id, "bob@example.com")
    note(api.workspace_id, "one")
    note(api.workspace_id, "two")
    first, second = all_of("SELECT id FROM notifications ORDER BY id")

    assert notifications.bell(ada.id).unread == 2
    notifications.mark_read(ada.id, first)
    assert notifications.bell(ada.id).unread == 1
    notifications.mark_read(ada.id, second)
    notifications.mark_read(ada.id, first)

    assert (notifications.bell(ada.id).unread, notifications.bell(bob.id).unread) == (0, 2)


def test_what_was_before_a_member_is_not_new_to_them(api: Api) -> None:
    note(api.workspace_id)

    with clock.moved_by(seconds=1):
        _, member = make_member(api.workspace_id)

    assert notifications.bell(member.id).unread == 0


def test_a_mention_is_new_to_whom_it_mentions_alone(api: Api) -> None:
    _, ada = make_member(api.workspace_id)
    _, bob = make_member(api.workspace_id, "bob@example.com", "agent")
    note(api.workspace_id)
    mention(bob)

    assert (notifications.bell(ada.id).unread, notifications.bell(bob.id).unread) == (1, 2)
    newest = [[each.kind for each in newest_of(api, id)] for id in (None, ada.id)]
    assert newest == [["import_ended"], ["import_ended"]]
    [last, first] = newest_of(api, bob.id)
    assert (last.kind, first.kind) == ("mentioned", "import_ended")
    assert [each.id for each in newest_of(api, bob.id, limit=1)] == [last.id]
    assert [each.id for each in newest_of(api, bob.id, last.id)] == [first.id]


def test_very_many_are_counted_no_further(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "MOST_UNREAD", 3)
    _, member = make_member(api.workspace_id)
    for number in range(10):
        note(api.workspace_id, str(number))

    assert notifications.bell(member.id).unread == 4
    for number in range(10):
        mention(member, number)
    assert notifications.bell(member.id).unread == 4


@pytest.mark.usefixtures("smtp")
def test_owners_are_sent_one_email_about_all_that_is_new(api: Api, others: Api) -> None:
    owner, _ = make_member(api.workspace_id)
    members.add(others.workspace_id, owner.id, "owner")
    make_member(api.workspace_id, "admin@example.com", "admin")
    silent, _ = make_member(api.workspace_id, "silent@example.com", "owner")
    notifications.want_email(silent.id, wanted=False)
    invited = make_account("invited@example.com", has_password=False)
    members.add(api.workspace_id, invited.id, "owner")
    note(api.workspace_id)
    note(others.workspace_id)

    assert notifications.announce() == 2
    assert notifications.announce() == 0

    assert rows("SELECT kind, subject_id FROM emails") == [("notifications", owner.id)]


@pytest.mark.usefixtures("smtp")
def test_who_is_mentioned_is_sent_email_owner_or_not(api: Api) -> None:
    make_member(api.workspace_id)
    agent, member = make_member(api.workspace_id, "agent@example.com", "agent")
    silent, other = make_member(api.workspace_id, "silent@example.com", "agent")
    notifications.want_email(silent.id, wanted=False)
    mention(member, 1)
    mention(other, 2)

    assert notifications.announce() == 2

    assert rows("SELECT kind, subject_id FROM emails") == [("notifications", agent.id)]


@pytest.mark.usefixtures("smtp")
def test_the_next_email_of_an_account_waits_for_an_hour(api: Api) -> None:
    owner, _ = make_member(api.workspace_id)
    rows("UPDATE accounts SET mailed_at = now()")
    note(api.workspace_id)

    notifications.announce()

    assert 3500 < one("SELECT extract(epoch FROM due_at - now()) FROM emails") <= 3600
    assert one("SELECT subject_id FROM emails") == owner.id


def test_without_a_server_nobody_gets_email_also_later(api: Api) -> None:
    make_member(api.workspace_id)
    note(api.workspace_id)

    assert notifications.announce() == 1

    assert one("SELECT count(*) FROM emails") == 0
    assert notifications.announce() == 0


def test_a_link_to_unsubscribe_stands_for_one_account_and_nothing_else(empty: None) -> None:
    account = make_account()
    token = notifications.unsubscribe_token(account.id)

    assert notifications.account_of(token) == account.id
    other = f"{ids.new('acc')}.{token.partition('.')[2]}"
    for forged in ("", "x", ".", "ü.ü", account.id, f"{account.id}.", other, f"{token}x"):
        assert notifications.account_of(forged) is None


def test_links_to_unsubscribe_outlive_a_new_key(keys: Keys) -> None:
    keys("first" * 8)
    token = notifications.unsubscribe_token("acc_1")

    keys("second" * 8, "first" * 8)

    assert notifications.account_of(token) == "acc_1"


def test_old_notifications_are_forgotten(api: Api) -> None:
    note(api.workspace_id)

    with clock.moved_by(days=89):
        assert delete_old("old_notifications") == 0
    with clock.moved_by(days=91):
        assert (delete_old("old_notifications"), delete_old("old_notifications")) == (1, 0)
