"""Saved views: of a member or of the workspace, each with a name of its own, and not too many."""

from __future__ import annotations

import pytest

from app.domain.inbox import saved_views
from app.errors import Conflict, Invalid
from app.models.saved_views import SavedView
from tests.cast import Api, in_threads, one
from tests.talks import make_member

FILTERS = {"view": "all", "label": "refund"}


def names(workspace_id: str, member_id: str | None) -> list[str]:
    return [view.name for view in saved_views.seen_by(workspace_id, member_id)]


def test_those_of_the_workspace_come_before_ones_own(api: Api, others: Api) -> None:
    me, other = make_member(api.workspace_id), make_member(api.workspace_id)
    saved_views.create(api.workspace_id, me, "Mine", FILTERS)
    saved_views.create(api.workspace_id, other, "Theirs", FILTERS)
    saved_views.create(api.workspace_id, None, "Ours", FILTERS)
    saved_views.create(others.workspace_id, None, "Elsewhere", FILTERS)

    assert names(api.workspace_id, me) == ["Ours", "Mine"]
    assert names(api.workspace_id, None) == ["Ours"]


def test_only_what_a_view_has_is_kept(api: Api) -> None:
    view = saved_views.create(api.workspace_id, None, " Refunds ", {**FILTERS, "q": "x", "assignee_id": ""})

    assert (view.name, view.filters) == ("Refunds", FILTERS)


def test_the_same_view_twice_is_one_and_another_with_its_name_is_refused(api: Api) -> None:
    first = saved_views.create(api.workspace_id, None, "Refunds", FILTERS)

    assert saved_views.create(api.workspace_id, None, "refunds", FILTERS).id == first.id
    with pytest.raises(Conflict):
        saved_views.create(api.workspace_id, None, "REFUNDS", {"view": "all"})


def test_there_are_at_most_as_many_as_may_be_also_at_once(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MOST_VIEWS", 2)
    saved_views.create(api.workspace_id, None, "1", FILTERS)

    results = in_threads(
        [lambda name=name: saved_views.create(api.workspace_id, None, name, FILTERS) for name in ("2", "3")]
    )

    assert sorted(type(each) for each in results if isinstance(each, Conflict)) == [Conflict]
    assert one("SELECT count(*) FROM saved_views") == 2


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "a\nb"])
def test_a_name_that_is_none_is_refused(api: Api, name: str) -> None:
    view = saved_views.create(api.workspace_id, None, "Refunds", FILTERS)

    with pytest.raises(Invalid):
        saved_views.create(api.workspace_id, None, name, FILTERS)
    with pytest.raises(Invalid):
        saved_views.rename(view, name)


def test_a_view_that_there_is_not_is_refused(api: Api) -> None:
    with pytest.raises(Invalid):
        saved_views.create(api.workspace_id, None, "Refunds", {"view": "search"})


def test_it_is_renamed_and_deleted(api: Api) -> None:
    view = saved_views.create(api.workspace_id, None, "Refunds", FILTERS)
    saved_views.create(api.workspace_id, None, "Other", FILTERS)

    saved_views.rename(view, "REFUNDS")
    with pytest.raises(Conflict):
        saved_views.rename(SavedView.get_by_id(view.id), "other")
    assert names(api.workspace_id, None) == ["REFUNDS", "Other"]

    saved_views.delete(view)
    saved_views.delete(view)
    assert names(api.workspace_id, None) == ["Other"]


def test_those_of_a_member_go_with_them(api: Api) -> None:
    me = make_member(api.workspace_id)
    saved_views.create(api.workspace_id, me, "Mine", FILTERS)

    SavedView._meta.database.execute_sql("DELETE FROM members WHERE id = %s", (me,))

    assert one("SELECT count(*) FROM saved_views") == 0
