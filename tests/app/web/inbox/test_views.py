"""Lists of the inbox: what a search shows, and what narrows a view."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from app.lib import clock
from tests.cast import Api, one
from tests.pages import Person
from tests.talks import assign, close

Say = Callable[..., str]
Listed = Callable[..., list[str]]


def contact_of(talk: str) -> str:
    return str(one("SELECT contact_id FROM conversations WHERE id = %s", talk))


def member_of(person: Person) -> str:
    return str(one("SELECT id FROM members WHERE account_id = %s", person.account_id))


def test_a_search_shows_the_line_with_what_was_found(agent: Person, say: Say, listed: Listed) -> None:
    say("Ada", "Where is my <refund>?")
    say("Grace", "Tulips")

    assert listed(agent, "?q=refu") == ["Ada"]
    row = agent.get("inbox?q=refu").text
    assert '<span class="found" dir="auto">Where is my &lt;<mark>refu</mark>nd&gt;?</span>' in row


def test_a_search_finds_closed_conversations_from_any_view(api: Api, agent: Person, say: Say, listed: Listed) -> None:
    close(api.workspace_id, contact_of(say("Ada", "Tulips")))

    assert listed(agent, "?view=mine&q=tulips") == ["Ada"]
    assert '<span class="state">closed</span>' in agent.page("inbox?q=ada")


def test_a_search_that_finds_nothing_says_what_to_try(agent: Person, say: Say) -> None:
    say("Ada")

    page = agent.page("inbox?q=zebra")

    assert "Nothing was found" in page
    assert "contacts?q=zebra" in page


def test_a_search_stays_beside_the_conversation_that_is_opened(agent: Person, say: Say, listed: Listed) -> None:
    say("Ada", "Tulips")
    say("Grace")

    [address] = re.findall(r'<a href="([^"]*)"[^>]*>\s*<span class="line"><bdi', agent.page("inbox?q=tulips"))

    assert "q=tulips" in address
    assert listed(agent, address.partition("/inbox")[2]) == ["Ada"]


def test_a_search_goes_on_where_its_page_ends(
    agent: Person, say: Say, listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.lists.ROWS", 2)
    for name in ("Ada", "Grace", "Mary"):
        say(name, "Tulips")

    following = re.search(r'rel="next" href="[^"]*\?([^"]+)"', agent.page("inbox?q=tulips"))

    assert following
    assert [*listed(agent, "?q=tulips"), *listed(agent, f"?{following[1]}")] == ["Mary", "Grace", "Ada"]


def test_views_are_narrowed_by_who_has_them(api: Api, agent: Person, say: Say, listed: Listed) -> None:
    talks = {name: say(name) for name in ("Ada", "Grace", "Mary")}
    me = member_of(agent)
    assign(api.workspace_id, contact_of(talks["Ada"]), me)
    tomorrow = (clock.now() + timedelta(days=1)).isoformat()
    for name in ("Ada", "Mary"):
        api.done(api.patch(f"conversations/{talks[name]}", {"snoozed_until": tomorrow}))

    assert listed(agent, f"?view=snoozed&assignee_id={me}") == ["Ada"]
    assert listed(agent, "?view=snoozed&assignee_id=none") == ["Mary"]
    assert listed(agent, "?view=all&assignee_id=none") == ["Grace"]
    assert listed(agent, f"?view=waiting&assignee_id={me}") == ["Ada"]
    assert listed(agent, f"?view=unassigned&assignee_id={me}") == ["Grace"]


def test_the_whole_view_is_offered_with_its_exact_number(
    api: Api, agent: Person, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.web.lists.ROWS", 1)
    for name in ("Ada", "Grace", "Mary"):
        api.done(api.patch(f"conversations/{say(name)}", {"labels": ["refund"] if name != "Mary" else ["other"]}))

    def offered(query: str) -> list[str]:
        return re.findall(r"All (\d+) of this view", html.unescape(agent.page(f"inbox{query}")))

    assert offered("?view=all") == ["3"]
    assert offered("?view=all&label=refund") == ["2"]
    assert offered("?view=unassigned") == offered("?view=waiting") == ["3"]
    for query in ("?view=mine", "?view=all&label=other", "?q=hello", "?view=waiting&label=refund"):
        assert offered(query) == []
