"""Selections: bulk changes of conversations, in small transactions, each conversation once.

A selection is fixed before its first change: the ticked conversations, or all that a view has when its job begins. A
conversation that has left the view since then is passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from peewee import fn

from app.database import rows, transaction
from app.domain.conversations import conversation_changes
from app.domain.inbox.choices import Choice
from app.domain.jobs import jobs
from app.domain.work.changes import Change, Effect
from app.errors import Conflict, Invalid
from app.models.contacts import Contact
from app.models.conversations import Conversation
from app.models.jobs import Job
from app.models.selections import Selection, SelectionPart

# The most conversations that one transaction changes and locks.
PART = 100
# The most conversations that can be ticked one by one: a page has no more.
MOST_TICKED = 200
# The most selections that a workspace may have in progress. Each runs in parts, which delay the workspace's other
# writes.
MOST_UNFINISHED = 5
# The actions that can be taken in many conversations at once.
ACTIONS = ("assign", "label", "unlabel", "snooze", "close", "open")


def store(
    workspace_id: str,
    selection_id: str,
    job_id: str,
    choice: Choice,
    action: Mapping[str, Any],
    ticked: Sequence[str] | None,
) -> None:
    """Stores a selection, in the transaction that stores its job.

    `ticked`: the conversations; None for all of the choice. Raises Conflict above MOST_UNFINISHED.
    """
    is_other = (Job.id != job_id) & (Job.kind == "selections.apply") & Job.status.in_(["queued", "running"])
    unfinished = Selection.select().where(Selection.job_id == Job.id, Selection.finished_at.is_null())
    if Job.in_workspace(workspace_id).where(is_other, fn.EXISTS(unfinished)).count() >= MOST_UNFINISHED:
        raise Conflict(f"{MOST_UNFINISHED} changes of many conversations are under way. Wait until one has ended.")
    Selection.insert(
        id=selection_id,
        workspace_id=workspace_id,
        job_id=job_id,
        choice=choice.as_json,
        action=action,
        total=None if ticked is None else len(ticked),
    ).execute()
    if ticked is None:  # finding the conversations takes as long as a part
        jobs.give_way(job_id)
    for number, first in enumerate(range(0, len(ticked or ()), PART)):
        part = (ticked or ())[first : first + PART]
        SelectionPart.insert(selection_id=selection_id, number=number, conversation_ids=part).execute()


def apply(change: Change) -> Effect | None:
    """Changes the next part of the selection; returns None while there are more.

    If the worker dies midway, none of the part has changed. Raises Busy if the next conversation is locked elsewhere.
    """
    selection = of_job(str(change.cause.job_id))
    is_going_on = (Selection.id == selection.id) & Selection.finished_at.is_null()
    if selection.total is None and selection.finished_at is None:
        total = Choice.of(selection.choice).write_down(change.workspace_id, selection.id, PART)
        if not Selection.update(total=total).where(is_going_on).execute():  # the selection was stopped meanwhile
            SelectionPart.delete().where(SelectionPart.selection_id == selection.id).execute()
        return None
    part = _next(selection.id)
    if part is not None:
        _change_some(change, selection, part)
        if _next(selection.id) is not None:
            return None
    Selection.update(finished_at=fn.clock_timestamp()).where(is_going_on).execute()
    return Effect("changed", "workspace", change.workspace_id)


def stop(selection: Selection) -> bool:
    """Ends the selection after the part in progress; returns False if it had ended already."""
    with transaction():
        is_going_on = (Selection.id == selection.id) & Selection.finished_at.is_null()
        if not Selection.update(finished_at=fn.clock_timestamp()).where(is_going_on).execute():
            return False
        SelectionPart.delete().where(SelectionPart.selection_id == selection.id).execute()
    return True


def of_job(job_id: str) -> Selection:
    """Returns the selection that was stored with the job."""
    return Selection.get(Selection.job_id == job_id)


def check(workspace_id: str, action: Mapping[str, Any]) -> None:
    """Raises Invalid if the workspace has no such assignee, or no snooze can end at the time."""
    snoozed_until = datetime.fromisoformat(action["until"]) if "until" in action else None
    wanted = {"snoozed_until": snoozed_until, "assignee_id": action.get("assignee_id")}
    conversation_changes.check(workspace_id, wanted)


def _next(selection_id: str) -> SelectionPart | None:
    of_selection = SelectionPart.select().where(SelectionPart.selection_id == selection_id)
    found: SelectionPart | None = of_selection.order_by(SelectionPart.number).first()
    return found


def _change_some(change: Change, selection: Selection, part: SelectionPart) -> None:
    """Changes the part's conversations, up to the first locked one, where the next part begins."""
    choice, action = Choice.of(selection.choice), selection.action
    numbers: Counter[str] = Counter()

    def alter(change: Change, contact: Contact, conversation: Conversation) -> None:
        if conversation.contact_id != contact.id or not choice.has(conversation):
            return
        try:
            with change.unit.attempt():
                wanted = conversation_changes.ACTIONS[action["do"]](conversation, action)
                after = conversation_changes.apply(change, contact, conversation, wanted)
        except (Conflict, Invalid):
            numbers["refused"] += 1
        else:
            numbers["unchanged" if after is conversation else "changed"] += 1

    contact_of = dict(rows(_CONTACTS, (part.conversation_ids, change.workspace_id)))
    there = [(each, contact_of[each]) for each in part.conversation_ids if each in contact_of]
    last = conversation_changes.change_some(change, there, alter)
    is_whole = not there or last == there[-1][0]
    left = [] if is_whole else part.conversation_ids[part.conversation_ids.index(last) + 1 :]
    _save(selection, part, numbers, left)


def _save(selection: Selection, part: SelectionPart, numbers: Counter[str], left: Sequence[str]) -> None:
    numbers["passed_over"] = len(part.conversation_ids) - len(left) - numbers.total()
    raised = {name: getattr(Selection, name) + number for name, number in numbers.items()}
    Selection.update(**raised).where(Selection.id == selection.id).execute()
    same = (SelectionPart.selection_id == part.selection_id) & (SelectionPart.number == part.number)
    if left:
        SelectionPart.update(conversation_ids=left).where(same).execute()
    else:
        SelectionPart.delete().where(same).execute()


_CONTACTS = "SELECT id, contact_id FROM conversations WHERE id = ANY(%s) AND workspace_id = %s"
