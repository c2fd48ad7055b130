"""Saved views of the inbox: who sees one, who may change it, and what the list says."""

from __future__ import annotations

import re

from flask import Flask

from tests import pages
from tests.cast import Api, one
from tests.pages import Person


def saved(person: Person) -> list[str]:
    return re.findall(r'<a class="saved"[^>]*><bdi>([^<]*)</bdi>', person.page("inbox"))


def save(person: Person, name: str = "Refunds", **fields: str) -> str:
    """Saves open conversations with the label refund, and returns the page that follows."""
    answer = person.post("inbox/views?view=all&label=refund", {"name": name, **fields})
    assert answer.status_code == 303
    return person.page(answer.location)


def test_ones_own_view_is_beneath_the_others_for_oneself_alone(agent: Person, owner: Person) -> None:
    page = save(agent)

    assert "The view is saved." in page
    [(link, name)] = re.findall(r'<a class="saved" href="([^"]*)" aria-current="true"><bdi>([^<]*)', page)
    assert (link.partition("?")[2], name) == ("view=all&label=refund", "Refunds")
    assert saved(owner) == []


def test_one_of_the_workspace_is_for_everybody_and_needs_an_admin(agent: Person, owner: Person) -> None:
    assert agent.post("inbox/views?view=all", {"name": "Ours", "shared": "true"}).status_code == 403
    save(owner, "Ours", shared="true")

    assert saved(agent) == saved(owner) == ["Ours"]


def test_who_may_change_a_view_renames_and_deletes_it(agent: Person, owner: Person) -> None:
    save(owner, "Ours", shared="true")
    view_id = one("SELECT id FROM saved_views")

    for do, fields in (("rename", {"name": "X"}), ("delete", {})):
        assert agent.post(f"inbox/views/{view_id}/{do}", fields).status_code == 303
    assert saved(owner) == ["Ours"]
    assert "not yours to change" in agent.page("inbox")

    owner.post(f"inbox/views/{view_id}/rename", {"name": "<b>Theirs</b>"})
    assert "&lt;b&gt;Theirs&lt;/b&gt;" in owner.get("inbox").text
    owner.post(f"inbox/views/{view_id}/delete")
    assert saved(owner) == []


def test_nobody_changes_the_views_of_another_member(app: Flask, api: Api, agent: Person, owner: Person) -> None:
    save(agent)
    view_id = one("SELECT id FROM saved_views")

    owner.post(f"inbox/views/{view_id}/delete")
    pages.member(app, api.workspace_id, "admin").post(f"inbox/views/{view_id}/rename", {"name": "X"})

    assert saved(agent) == ["Refunds"]


def test_views_of_another_workspace_are_not_there(agent: Person, stranger: Person, others: Api) -> None:
    save(agent)
    view_id = one("SELECT id FROM saved_views")

    theirs = f"/workspaces/{others.workspace_id}/inbox/views/{view_id}"
    assert stranger.post(f"{theirs}/delete").status_code == 404
    assert stranger.post(f"{theirs}/rename", {"name": "X"}).status_code == 404
    assert saved(agent) == ["Refunds"]


def test_a_second_click_saves_no_second_view(agent: Person) -> None:
    save(agent)

    assert "The view is saved." in save(agent)
    assert saved(agent) == ["Refunds"]


def test_what_is_wrong_with_a_name_is_said(agent: Person) -> None:
    assert "A name has 1 to 255 characters" in save(agent, "")
    save(agent)
    answer = agent.post("inbox/views?view=closed", {"name": "Refunds"})
    assert "There is a view with the name “Refunds” already." in agent.page(answer.location)


def test_support_saves_views_of_the_workspace_during_a_visit(support: Person) -> None:
    assert support.post("inbox/views?view=all", {"name": "X"}).status_code == 403
    support.visit()

    assert "Support staff have no views of their own." in save(support)
    assert "The view is saved." in save(support, shared="true")
