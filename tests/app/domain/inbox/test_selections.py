"""Selections: every chosen conversation is changed once, whatever happens meanwhile, and each is accounted for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from app.database import rows, transaction
from app.domain import writes
from app.domain.inbox import selections
from app.domain.inbox.choices import Choice
from app.domain.retention import delete_old
from app.domain.work.changes import Write
from app.errors import Conflict, Invalid
from app.lib import clock, ids
from app.models.jobs import Job
from app.models.selections import Selection
from tests.cast import Api, all_of, apply, one
from tests.talks import close, make_channel, make_member, receive

Begin = Callable[..., Selection]
ALL = Choice("all")


@pytest.fixture
def talks(api: Api, channel_id: str) -> list[str]:
    """Five conversations, in the order in which they began."""
    contacts = [api.contact(external_id=str(number))["id"] for number in range(5)]
    return [str(receive(api.workspace_id, each, channel_id).conversation_id) for each in contacts]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "PART", 2)


@pytest.fixture
def begin(api: Api) -> Begin:
    """Accepts a change of the ticked conversations, or of all of the choice."""

    def begin(action: dict[str, Any], ticked: list[str] | None = None, choice: Choice = ALL) -> Selection:
        write = Write(api.workspace_id, "selections.apply", {}, "trace-1", api.workspace_id)
        store = partial(selections.store, api.workspace_id, ids.new("sel"), choice=choice, action=action, ticked=ticked)
        job, _ = writes.accept(write, store=lambda job_id: store(job_id=job_id))
        return selections.of_job(job.id)

    return begin


def outcome(selection: Selection) -> tuple[int, ...]:
    """How many there are, were changed, needed no change, were refused, and were passed over."""
    now = Selection.get_by_id(selection.id)
    assert now.finished_at is not None
    assert one("SELECT count(*) FROM selection_parts") == 0
    assert Job.get_by_id(now.job_id).status == "succeeded"
    return now.total, now.changed, now.unchanged, now.refused, now.passed_over


def column(name: str) -> list[Any]:
    return all_of(f"SELECT {name} FROM conversations ORDER BY id")


def contact_of(talk: str) -> str:
    return str(one("SELECT contact_id FROM conversations WHERE id = %s", talk))


def test_ticked_ones_are_changed_and_no_others(api: Api, talks: list[str], begin: Begin) -> None:
    made = begin({"do": "close"}, talks[:3])

    api.apply()

    assert outcome(made) == (3, 3, 0, 0, 0)
    assert column("status") == ["closed"] * 3 + ["open"] * 2
    assert one("SELECT count(*) FROM events WHERE kind = 'conversation.closed'") == 3


def test_all_of_a_view_are_changed(api: Api, talks: list[str], begin: Begin) -> None:
    member_id = make_member(api.workspace_id)
    begin({"do": "assign", "assignee_id": member_id}, talks[:2])
    api.apply()

    made = begin({"do": "label", "label": "refund"}, choice=Choice("mine", {}, member_id))
    api.apply()

    assert outcome(made) == (2, 2, 0, 0, 0)
    assert column("labels") == [["refund"]] * 2 + [[]] * 3


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice("all"), {0, 1, 2}),
        (Choice("all", {"label": "refund"}), {1}),
        (Choice("all", {"label": "REFUND"}), {1}),
        (Choice("all", {"label": "zoe\u0308"}), {1}),
        (Choice("snoozed", {"label": "\uff33een"}), set()),
        (Choice("all", {"assignee_id": "none"}), {0, 1, 2}),
        (Choice("unassigned"), {0, 1, 2}),
        (Choice("mine", {}, "mem_nobody"), set()),
        (Choice("waiting"), {0, 1, 2, 3}),
        (Choice("snoozed"), {3}),
    ],
)
def test_a_choice_has_what_its_list_has(
    api: Api, talks: list[str], begin: Begin, choice: Choice, expected: set[int]
) -> None:
    tomorrow = (clock.now() + timedelta(days=1)).isoformat()
    api.done(api.patch(f"conversations/{talks[1]}", {"labels": ["refund", "Zoë"]}))
    api.done(api.patch(f"conversations/{talks[3]}", {"snoozed_until": tomorrow}))
    close(api.workspace_id, contact_of(talks[4]))

    made = begin({"do": "label", "label": "seen"}, choice=choice)
    counted = choice.count(api.workspace_id)
    api.apply()

    labelled = {number for number, labels in enumerate(column("labels")) if "seen" in labels}
    assert labelled == expected
    assert outcome(made) == (len(expected), len(expected), 0, 0, 0)
    assert counted == len(expected)


def test_what_has_changed_meanwhile_is_passed_over_and_counted(api: Api, talks: list[str], begin: Begin) -> None:
    made = begin({"do": "assign", "assignee_id": make_member(api.workspace_id)}, talks, Choice("unassigned"))
    other = make_member(api.workspace_id)
    rows("UPDATE conversations SET assignee_id = %s WHERE id = %s", (other, talks[0]))
    close(api.workspace_id, contact_of(talks[1]))

    api.apply()

    assert outcome(made) == (5, 3, 0, 0, 2)
    assert column("assignee_id")[:2] == [other, None]


def test_what_came_after_the_choice_is_left_alone(api: Api, talks: list[str], begin: Begin) -> None:
    made = begin({"do": "close"})
    writes.work(api.workspace_id)
    new = receive(api.workspace_id, api.contact(external_id="new")["id"], make_channel(api.workspace_id))

    api.apply()

    assert outcome(made) == (5, 5, 0, 0, 0)
    assert one("SELECT status FROM conversations WHERE id = %s", new.conversation_id) == "open"


def test_what_needs_no_change_or_may_not_have_it_is_counted(api: Api, talks: list[str], begin: Begin) -> None:
    api.done(api.patch(f"conversations/{talks[0]}", {"labels": ["seen"]}))
    api.done(api.patch(f"conversations/{talks[1]}", {"labels": [str(number) for number in range(20)]}))

    made = begin({"do": "label", "label": "seen"}, talks)
    api.apply()

    assert outcome(made) == (5, 3, 1, 1, 0)


def test_labels_snoozes_and_the_way_back(api: Api, talks: list[str], begin: Begin) -> None:
    until = clock.now() + timedelta(days=1)
    begin({"do": "label", "label": "refund"}, talks[:2])
    begin({"do": "unlabel", "label": "Refund"}, talks[:1])
    begin({"do": "snooze", "until": until.isoformat()}, talks[2:3])
    begin({"do": "close"}, talks[3:])
    begin({"do": "open"}, talks[4:], Choice("closed"))

    api.apply()

    assert column("labels") == [[], ["refund"], [], [], []]
    assert column("snoozed_until") == [None, None, until, None, None]
    assert column("status") == ["open", "open", "open", "closed", "open"]


def test_other_writes_of_the_workspace_come_between_its_parts(api: Api, talks: list[str], begin: Begin) -> None:
    begin({"do": "close"}, talks)
    api.post("contacts", {"external_id": "in between"})

    api.apply()

    finished = all_of("SELECT kind FROM jobs WHERE finished_at IS NOT NULL ORDER BY finished_at")[-2:]
    assert finished == ["contacts.upsert", "selections.apply"]


def test_a_worker_that_dies_midway_changes_nothing_twice(
    api: Api, talks: list[str], begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = begin({"do": "close"}, talks)
    real = selections._save
    died: list[str] = []

    def die_once(*args: Any) -> None:
        real(*args)
        if len(died) < 1:
            died.append("here")
            raise KeyboardInterrupt

    monkeypatch.setattr(selections, "_save", die_once)
    with pytest.raises(KeyboardInterrupt):
        apply(api.workspace_id)
    assert column("status") == ["open"] * 5
    rows("UPDATE jobs SET leased_until = NULL WHERE finished_at IS NULL")

    api.apply()

    assert outcome(made) == (5, 5, 0, 0, 0)
    assert one("SELECT count(*) FROM events WHERE kind = 'conversation.closed'") == 5


def test_a_conversation_that_is_gone_stops_nothing(api: Api, talks: list[str], begin: Begin) -> None:
    api.done(api.delete(f"contacts/{contact_of(talks[0])}"))
    made = begin({"do": "label", "label": "seen"}, [ids.new("cnv"), *talks], Choice("all"))

    api.apply()

    assert outcome(made) == (6, 4, 0, 0, 2)


def test_conversations_of_another_workspace_are_not_touched(others: Api, talks: list[str], begin: Begin) -> None:
    contact = others.contact(external_id="x")["id"]
    theirs = receive(others.workspace_id, contact, make_channel(others.workspace_id)).conversation_id
    made = begin({"do": "close"}, [str(theirs), talks[0]])

    apply(made.workspace_id)

    assert outcome(made) == (2, 1, 0, 0, 1)
    assert one("SELECT status FROM conversations WHERE id = %s", theirs) == "open"


def test_an_empty_view_is_done_at_once(api: Api, begin: Begin) -> None:
    made = begin({"do": "close"})

    api.apply()

    assert outcome(made) == (0, 0, 0, 0, 0)


def test_a_member_that_is_none_and_a_time_that_has_passed_are_refused(api: Api, others: Api) -> None:
    for action in (
        {"do": "assign", "assignee_id": make_member(others.workspace_id)},
        {"do": "snooze", "until": clock.now().isoformat()},
    ):
        with pytest.raises(Invalid):
            selections.check(api.workspace_id, action)


def test_a_workspace_has_a_few_unfinished_ones(api: Api, talks: list[str], begin: Begin) -> None:
    for _ in range(selections.MOST_UNFINISHED):
        begin({"do": "close"}, talks)

    with pytest.raises(Conflict, match="are under way"):
        begin({"do": "close"}, talks)

    assert one("SELECT count(*) FROM jobs WHERE kind = 'selections.apply'") == selections.MOST_UNFINISHED
    api.apply()
    begin({"do": "close"}, talks)


def test_old_ones_are_forgotten(api: Api, talks: list[str], begin: Begin) -> None:
    made = begin({"do": "close"}, talks)
    api.apply()
    assert delete_old("old_selections") == 0

    rows("UPDATE selections SET finished_at = now() - interval '400 days' WHERE id = %s", (made.id,))

    assert delete_old("old_selections") == 1


def test_writing_a_view_down_reads_no_whole_table(api: Api, talks: list[str], scanned: list[tuple[str, str]]) -> None:
    rows("SET enable_seqscan = off")
    try:
        for choice in (Choice("all"), Choice("all", {"label": "refund"}), Choice("waiting"), Choice("snoozed")):
            with transaction():
                choice.count(api.workspace_id)
    finally:
        rows("RESET enable_seqscan")

    assert scanned == []
