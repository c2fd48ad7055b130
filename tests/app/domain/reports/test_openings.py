"""Openings of conversations: what counts as messages, answers and closings as people and programs write."""

from __future__ import annotations

from app.database import rows
from app.domain.reports.periods import Period
from tests.cast import Api, one
from tests.inbox_histories import total
from tests.talks import close, make_member, receive, write


def test_a_conversation_counts_as_people_and_programs_write(api: Api, talk: tuple[str, str], today: Period) -> None:
    contact_id, _channel_id = talk
    conversation_id = one("SELECT id FROM conversations")
    api.done(api.post(f"conversations/{conversation_id}/messages", {"text": "We read it."}))
    assert total(api, today) == {"received": 1, "opened": 1}

    rows("UPDATE messages SET status = 'sent' WHERE direction = 'out'")
    assert total(api, today) == {"received": 1, "opened": 1, "sent_by_programs": 1}

    write(api.workspace_id, contact_id, make_member(api.workspace_id))
    rows("UPDATE messages SET status = 'delivered' WHERE direction = 'out'")
    close(api.workspace_id, contact_id)

    answered = {"received": 1, "opened": 1, "sent_by_programs": 1, "sent": 1, "answered": 1, "answer_time": 1}
    assert total(api, today) == answered | {"closed": 1, "resolution_time": 1}


def test_a_conversation_that_is_opened_again_counts_anew(api: Api, talk: tuple[str, str], today: Period) -> None:
    contact_id, channel_id = talk
    member_id = make_member(api.workspace_id)
    for _ in range(2):
        receive(api.workspace_id, contact_id, channel_id)
        write(api.workspace_id, contact_id, member_id)
        rows("UPDATE messages SET status = 'sent' WHERE direction = 'out'")
        close(api.workspace_id, contact_id)

    found = total(api, today)

    assert (found["opened"], found["reopened"], found["answered"], found["closed"]) == (2, 1, 2, 2)


def test_an_answer_that_is_sent_after_the_closing_is_one(api: Api, talk: tuple[str, str], today: Period) -> None:
    write(api.workspace_id, talk[0], make_member(api.workspace_id))
    close(api.workspace_id, talk[0])
    assert "answered" not in total(api, today)

    rows("UPDATE messages SET status = 'sent' WHERE direction = 'out'")

    assert total(api, today)["answered"] == 1


def test_erasing_the_contact_keeps_the_figures_and_is_no_closing(
    api: Api, talk: tuple[str, str], today: Period
) -> None:
    before = total(api, today)

    api.done(api.delete(f"contacts/{talk[0]}"))

    assert total(api, today) == before
    assert one("SELECT status FROM conversations") == "closed"
    assert one("SELECT count(*) FROM conversation_openings") == 0


def test_a_merge_counts_nothing_again(api: Api, talk: tuple[str, str], today: Period) -> None:
    before = total(api, today)
    kept = api.contact(external_id="grace")["id"]

    api.done(api.post(f"contacts/{kept}/merge", {"contact_id": talk[0]}))

    assert total(api, today) == before


def test_conversations_older_than_the_figures_have_no_times(api: Api, talk: tuple[str, str], today: Period) -> None:
    rows("DELETE FROM conversation_transitions")
    rows("UPDATE inbox_figure_progress SET counted_until = now()")

    write(api.workspace_id, talk[0], make_member(api.workspace_id))
    rows("UPDATE messages SET status = 'sent' WHERE direction = 'out'")
    close(api.workspace_id, talk[0])

    assert total(api, today) == {"sent": 1, "closed": 1}
