"""The inbox: which conversations its lists have, in which order and how many, and what a conversation's page shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest

from app.database import rows
from app.domain.conversations import conversation_counts
from app.lib import clock
from app.web.inbox import views
from tests.cast import Api, one
from tests.pages import Person
from tests.talks import add_note, assign, close, make_channel, make_run, write

Say = Callable[..., str]
TITLE, TALK, SIDE = (
    "<title>.*?</title>",
    '<section class="pane talk".*?</section>',
    '<aside class="pane side-pane".*?</aside>',
)
ALWAYS_NEW = re.compile(r'name="(once|csrf_token)" value="[^"]*"')


def me(person: Person) -> str:
    return str(one("SELECT id FROM members WHERE account_id = %s", person.account_id))


def contact_of(conversation_id: str) -> str:
    return str(one("SELECT contact_id FROM conversations WHERE id = %s", conversation_id))


def listed(person: Person, query: str = "") -> list[str]:
    """The names in the list, from its top."""
    return re.findall(r'<bdi class="name">([^<]*)</bdi>', person.page(f"inbox{query}"))


def counts(person: Person) -> dict[str, int]:
    return {name: number for name, number in person.get("inbox/counts").json.items() if name != "labels"}


def test_the_latest_message_is_first(agent: Person, say: Say) -> None:
    for name in ("Ada", "Grace", "Ada"):
        say(name)

    assert listed(agent) == ["Ada", "Grace"]


def test_each_view_has_its_conversations_and_their_exact_number(api: Api, agent: Person, say: Say) -> None:
    talks = {name: say(name) for name in ("Ada", "Grace", "Mary", "Annie", "Radia")}
    assign(api.workspace_id, contact_of(talks["Ada"]), me(agent))
    close(api.workspace_id, contact_of(talks["Grace"]))
    write(api.workspace_id, contact_of(talks["Mary"]), me(agent))
    for name in ("Annie", "Ada"):
        tomorrow = (clock.now() + timedelta(days=1)).isoformat()
        api.done(api.patch(f"conversations/{talks[name]}", {"snoozed_until": tomorrow}))

    found = {view: listed(agent, f"?view={view}") for view in views.LABELS}

    assert found == {
        "mine": [],
        "unassigned": ["Mary", "Radia"],
        "all": ["Mary", "Radia"],
        "waiting": ["Ada", "Annie", "Radia"],
        "snoozed": ["Annie", "Ada"],
        "closed": ["Grace"],
    }
    expected = {view: len(names) for view, names in found.items() if view != "closed"}
    assert counts(agent) == expected
    conversation_counts.fold()
    assert counts(agent) == expected


def test_a_list_is_narrowed_by_label_and_channel(api: Api, agent: Person, say: Say) -> None:
    other = make_channel(api.workspace_id)
    refund, _, elsewhere = say("Ada"), say("Grace"), say("Mary", channel=other)
    for each in (refund, elsewhere):
        api.done(api.patch(f"conversations/{each}", {"labels": ["refund"]}))

    assert listed(agent, "?label=refund") == ["Mary", "Ada"]
    assert listed(agent, f"?label=refund&channel_id={other}") == ["Mary"]
    assert listed(agent, f"?view=waiting&channel_id={other}") == ["Mary"]
    assert listed(agent, "?label=unheard-of") == []


def test_lists_go_on_where_a_page_ends(agent: Person, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.lists.ROWS", 2)
    for name in ("Ada", "Grace", "Mary"):
        say(name)

    for view, order in (("all", ["Mary", "Grace", "Ada"]), ("waiting", ["Ada", "Grace", "Mary"])):
        first = agent.page(f"inbox?view={view}")
        following = re.search(r'rel="next" href="[^"]*\?([^"]+)"', first)
        assert following
        assert [*listed(agent, f"?view={view}"), *listed(agent, f"?{following[1]}")] == order


@pytest.mark.parametrize(
    "place", ["x", "~", "2026-01-01T00:00:00Z~", "2026-13-01T00:00:00Z~cnv_1", "2026-01-01T00:00:00~a"]
)
def test_a_place_that_makes_no_sense_is_the_beginning(agent: Person, say: Say, place: str) -> None:
    say("Ada")

    assert listed(agent, f"?after={place}") == ["Ada"]
    assert listed(agent, f"?view=waiting&after={place}") == ["Ada"]


@pytest.mark.parametrize("time", ["2026-W01-1T00:00:00Z", "20260101T000000Z", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_postgresql_would_not_read_is_a_place_too(agent: Person, say: Say, time: str) -> None:
    talk = say("Ada")

    for view in ("all", "waiting", "snoozed", "closed"):
        agent.page(f"inbox?view={view}&after={quote(time)}~cnv_1")
    for row_id in ("msg_1", "%00"):
        agent.page(f"inbox/{talk}?before={quote(time)}~{row_id}")


def test_a_list_costs_the_same_however_long_it_is(agent: Person, say: Say, statements: list[str]) -> None:
    say("Ada")
    agent.page("inbox")
    statements.clear()
    agent.page("inbox")
    of_one = len(statements)
    for name in ("Grace", "Mary", "Annie", "Radia"):
        say(name)
    statements.clear()

    agent.page("inbox")

    assert len(statements) == of_one


def test_a_conversation_shows_messages_and_notes_in_order(api: Api, agent: Person, say: Say) -> None:
    talk = say("Ada", "Where is it?")
    add_note(api, talk, "Lost in the post.")
    write(api.workspace_id, contact_of(talk), me(agent), "On its way.")

    page = agent.page(f"inbox/{talk}")

    assert re.findall(r'<p class="text">([^<]*)</p>', page) == ["Where is it?", "Lost in the post.", "On its way."]
    assert '<p class="status">Queued</p>' in page


def test_older_messages_are_a_link_away_and_none_is_lost_or_doubled(
    api: Api, agent: Person, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.inbox.threads.MESSAGES", 3)
    talk = say("Ada", "0")
    for number in range(1, 7):
        add_note(api, talk, f"note {number}")
        say("Ada", str(number))

    seen, path = [], f"inbox/{talk}"
    while True:
        page = agent.page(path)
        seen[:0] = re.findall(r'<p class="text">([^<]*)</p>', page)
        link = re.search(r'id="older" href="([^"]+)"', page)
        if link is None:
            break
        path = link[1]

    assert seen == ["0", *(text for number in range(1, 7) for text in (f"note {number}", str(number)))]


def test_the_pane_beside_it_shows_the_contact_and_its_runs(api: Api, agent: Person, say: Say) -> None:
    talk = say("Ada")
    run = make_run(api.workspace_id, contact_of(talk), waits_for="reply")

    page = agent.page(f"inbox/{talk}")

    assert "ada@example.com" in page
    assert f"/inbox/{talk}/contact/runs/{run}?" in page


def test_beside_a_conversation_stands_which_advertisement_the_contact_comes_from(agent: Person, say: Say) -> None:
    talk = say("Ada")
    rows("""UPDATE conversations SET referral = '{"source_id": "120", "headline": "<b>Boots</b>"}'""")

    assert "From the advertisement <bdi>&lt;b&gt;Boots&lt;/b&gt;</bdi>" in agent.get(f"inbox/{talk}").text


@pytest.mark.parametrize(("hours", "goes_out"), [(23, True), (25, False), (None, False)])
def test_an_answer_to_somebody_who_opted_out_goes_out_for_a_day(
    agent: Person, say: Say, hours: int | None, *, goes_out: bool
) -> None:
    talk = say("Ada")
    rows("UPDATE contacts SET opted_out = true")
    rows("UPDATE conversations SET asked_at = now() - %s * interval '1 hour'", (hours,))

    page = agent.page(f"inbox/{talk}")

    assert ("so your answer goes out." in page, "What you send will not go out." in page) == (goes_out, not goes_out)


def test_a_deleted_contact_can_be_looked_at_and_not_written_to(api: Api, agent: Person, say: Say) -> None:
    talk = say("Ada")
    api.done(api.delete(f"contacts/{contact_of(talk)}"))

    page = agent.page(f"inbox/{talk}")

    assert "This contact was deleted. Nothing can be sent." in page
    assert 'id="composer"' not in page
    assert listed(agent, "?view=closed") == ["Deleted contact"]


def test_a_row_alone_is_as_in_the_list(agent: Person, say: Say) -> None:
    talk = say("Ada", "<b>Hello</b>")

    row = agent.get(f"inbox/{talk}/row?view=all").text

    assert row.strip() in agent.get("inbox?view=all").text
    assert "&lt;b&gt;Hello&lt;/b&gt;" in row


def test_the_panes_alone_are_as_on_the_page(agent: Person, say: Say, statements: list[str]) -> None:
    talk = say("Ada", "<i>Hello</i>")
    page = agent.get(f"inbox/{talk}?view=all").text
    of_page = len(statements)
    statements.clear()
    panes = agent.get(f"inbox/{talk}/panes?view=all").text

    title, talk_pane, side = (re.search(part, panes, re.S) for part in (TITLE, TALK, SIDE))
    for part in (title, talk_pane, side):
        assert part is not None
        assert ALWAYS_NEW.sub("", part[0]) in ALWAYS_NEW.sub("", page)
    assert "&lt;i&gt;Hello&lt;/i&gt;" in panes
    assert 'id="rows"' not in panes
    assert len(statements) < of_page - 5


def test_support_staff_see_it_and_have_no_conversations_of_their_own(support: Person, say: Say) -> None:
    talk = say("Ada")

    assert listed(support, "?view=mine") == ["Ada"]
    assert "mine" not in counts(support)
    assert support.post(f"inbox/{talk}/write", {"kind": "reply", "text": "Hi"}).status_code == 403
    support.visit()
    assert support.post(f"inbox/{talk}/write", {"kind": "reply", "text": "Hi"}).status_code == 303
    assert rows("SELECT text FROM messages WHERE direction = 'out'") == [("Hi",)]
