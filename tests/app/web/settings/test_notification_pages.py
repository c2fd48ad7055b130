"""The bell and the list of notifications."""

from __future__ import annotations

from app.domain.people import notifications
from tests.cast import Api, all_of, one
from tests.pages import Person
from tests.talks import add_note, make_channel, receive


def note(api: Api, number: int = 1) -> None:
    detail = {"import_id": f"imp_{number}", "total": number, "done": number, "failed": 0}
    notifications.note(api.workspace_id, "import_ended", str(number), detail)


def test_the_bell_counts_what_is_new(owner: Person, agent: Person, api: Api) -> None:
    assert 'aria-label="Notifications"' in owner.page("settings/members")
    for number in range(3):
        note(api, number)

    assert 'aria-label="Notifications: 3 unread"' in owner.page("settings/members")
    owner.post("notifications/read", {"until": one("SELECT max(id) FROM notifications")})

    assert 'aria-label="Notifications"' in owner.page("settings/members")
    assert 'aria-label="Notifications: 3 unread"' in agent.page("settings/members")


def test_the_list_tells_what_happened_and_leads_there(owner: Person, api: Api) -> None:
    note(api, 7)

    page = owner.page("notifications")

    assert "An import of contacts ended: 7 of 7 lines were imported." in page
    assert f"/workspaces/{api.workspace_id}/contacts/imports/imp_7" in page
    assert "New" in page


def test_what_comes_while_one_reads_stays_new(owner: Person, api: Api) -> None:
    note(api, 1)
    seen = one("SELECT id FROM notifications")
    note(api, 2)

    owner.post("notifications/read", {"until": seen})

    assert 'aria-label="Notifications: 1 unread"' in owner.page("notifications")


def test_a_forged_place_reads_nothing(owner: Person, api: Api) -> None:
    note(api)

    for until in ("", "x", "ntf_zzzz", "whe_01kaj5bd40e6rr3f5y2kq0w9xz"):
        owner.post("notifications/read", {"until": until})

    assert 'aria-label="Notifications: 1 unread"' in owner.page("notifications")


def test_an_empty_list_says_what_it_is_for(owner: Person) -> None:
    assert "Nothing needs your attention." in owner.page("notifications")


def test_other_workspaces_hear_nothing(stranger: Person, api: Api) -> None:
    note(api)

    assert stranger.get("notifications").status_code == 404
    assert stranger.post("notifications/read", {"until": "x"}).status_code == 404


def test_support_sees_the_list_but_reads_for_nobody(support: Person, owner: Person, api: Api) -> None:
    note(api)

    assert "An import of contacts ended" in support.page("notifications")
    support.post("notifications/read", {"until": one("SELECT max(id) FROM notifications")})

    assert 'aria-label="Notifications: 1 unread"' in owner.page("notifications")


def test_a_mention_leads_to_the_contact_also_after_a_merge(owner: Person, agent: Person, api: Api) -> None:
    hostile = api.contact(external_id="one", first_name="<script>alert(1)</script>")["id"]
    conversation_id = receive(api.workspace_id, hostile, make_channel(api.workspace_id)).conversation_id
    [member_id] = all_of("SELECT id FROM members WHERE role = 'agent' AND workspace_id = %s", api.workspace_id)
    add_note(api, conversation_id, "<script>alert(2)</script>", mentions=[member_id])
    kept = api.contact(external_id="two")["id"]
    api.done(api.post(f"contacts/{kept}/merge", {"contact_id": hostile}))

    page = agent.page("notifications")

    assert "You were mentioned in a note on the conversation with" in page
    assert "<script>alert" not in agent.get("notifications").text
    path = f"inbox/{conversation_id}"
    assert path in page
    assert f"/dashboard/contacts/{kept}" in agent.page(path)
    assert "You were mentioned" not in owner.page("notifications")


def test_what_others_wrote_is_text_not_markup(owner: Person, api: Api) -> None:
    detail = {"endpoint_id": "whe_1", "address": "https://x.example/<script>alert(1)</script>", "reason": "<b>bold</b>"}
    notifications.note(api.workspace_id, "endpoint_stopped", "one", detail)

    text = owner.get("notifications").text

    assert "<script>alert" not in text
    assert "<b>bold" not in text


def test_many_are_read_at_once(owner: Person, api: Api) -> None:
    for number in range(60):
        note(api, number)

    page = owner.page("notifications")
    assert 'rel="next"' in page
    owner.post("notifications/read", {"until": all_of("SELECT id FROM notifications ORDER BY id DESC")[0]})

    assert "Mark all as read" not in owner.page("notifications")
